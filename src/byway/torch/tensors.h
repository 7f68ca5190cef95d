// SPDX-License-Identifier: BSD-3-Clause
// Tensors as the communicator's regions, types and reductions.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/Types.hpp>

#include "byway/base/types.h"
#include "byway/comm/communicator.h"

namespace byway::pytorch {

using Tensors = std::vector<at::Tensor>;

// Throws Error{InvalidArgument} for what is not a strided CPU tensor, naming it `what`.
void checkTensor(const at::Tensor& tensor, const std::string& what);
// The same type for all; empty lists are refused.
void checkTensors(const Tensors& tensors, const std::string& what);
// The type of elements. Types without arithmetic here move as bytes of their size where nothing is
// summed; with `reduces` they are refused.
DType dtypeOf(at::ScalarType type, bool reduces);
DType dtypeOf(const at::Tensor& tensor, bool reduces);
// The op and, for PREMUL_SUM, its factor.
Reduction reductionOf(const c10d::ReduceOp& op);
std::uint64_t countOf(const at::Tensor& tensor);
std::uint64_t countOf(const Tensors& tensors);
// "float32[2, 3]"; lists in brackets, shortened.
std::string describe(const Tensors& tensors);

// What a call keeps until it is over: its tensors, and where results that were received
// contiguously must go. An element's place is its index, so tensors of other layouts (transposed,
// channels_last, strided) are sent from and received into contiguous copies.
class Holder {
 public:
  Holder() = default;
  ~Holder();
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  Region input(const at::Tensor& tensor);
  Region input(const Tensors& tensors);
  Region output(const at::Tensor& tensor);
  Region output(const Tensors& tensors);
  Region inOut(const at::Tensor& tensor);
  // What copyBack() does last; `result`, which it writes, is kept until then.
  void afterwards(const at::Tensor& result, std::function<void()> action);
  // Copies results to where they belong, once the transport is done with the memory.
  void copyBack();
  // Lets go of everything; not under the library's locks, since freeing a tensor may need Python.
  void clear();

 private:
  void addInput(const at::Tensor& tensor, std::vector<Buffer>& parts);
  void addOutput(const at::Tensor& tensor, bool withContents, std::vector<Buffer>& parts);

  Tensors held_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  // to, from
  std::function<void()> afterwards_;
};

// Frees tensors of failed calls that the transport let go of under the library's locks. Called
// without locks.
void freeLeftovers();

}  // namespace byway::pytorch
