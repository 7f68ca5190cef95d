// SPDX-License-Identifier: BSD-3-Clause
// All that differs between the torch releases that Byway can be built for (2.11 to 2.14).
#pragma once

#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <torch/version.h>

#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR < 11 || TORCH_VERSION_MINOR > 14
#error "Byway's torch backend is written for torch 2.11 to 2.14"
#endif

// The names of the methods that take one flat tensor (`_allgather_base` and its kind) are the same
// in all of them: later releases add other names, which call these.

namespace byway::pytorch {

// 2.11 has no type of its own for them.
template <typename Type = c10d::OpType>
constexpr Type reduceScatterCoalescedType() {
  if constexpr (requires { Type::REDUCE_SCATTER_TENSOR_COALESCED; })
    return Type::REDUCE_SCATTER_TENSOR_COALESCED;
  else
    return Type::_REDUCE_SCATTER_BASE;
}

// 2.11 names the factor of PREMUL_SUM after NCCL; later releases have that name for it, too.
using PreMulSum = c10d::NCCLPreMulSumSupplement;

template <typename Factor>
c10d::ReduceOp makePreMulSum(const Factor& factor) {
  c10d::ReduceOp made;  // the constructor that takes a supplement does not keep it
  made.supplement_ = c10::make_intrusive<PreMulSum>(factor);
  made.op_ = c10d::ReduceOp::PREMUL_SUM;
  return made;
}

}  // namespace byway::pytorch
