// SPDX-License-Identifier: BSD-3-Clause
// Helpers of the reduction tests.
#pragma once

#include <complex>
#include <cstring>
#include <span>
#include <vector>

#include "byway/kernels/convert.h"
#include "byway/kernels/reduce.h"

namespace byway::testing_util {

using Bytes = std::vector<std::uint8_t>;

inline constexpr DType kDTypes[] = {
#define BYWAY_X(id, name, bytes) DType::id,
    BYWAY_DTYPES(BYWAY_X)
#undef BYWAY_X
};
inline constexpr ReduceOp kOps[] = {
#define BYWAY_X(id, name) ReduceOp::id,
    BYWAY_REDUCE_OPS(BYWAY_X)
#undef BYWAY_X
};

// Calls f(dtype, op) for every supported pair.
template <class F>
void forEachPair(F f) {
  for (const DType dtype : kDTypes) {
    for (const ReduceOp op : kOps) {
      if (whyUnsupported(dtype, op) == nullptr) f(dtype, op);
    }
  }
}

// Numbers of a small float type, as their bits, and back.
template <class Format>
std::vector<typename Format::Bits> encoded(const std::vector<float>& values) {
  std::vector<typename Format::Bits> bits;
  for (const float value : values) bits.push_back(fromFloat<Format>(value));
  return bits;
}

// Reduces equal arrays of T, once by each implementation; the results must agree.
template <class T>
std::vector<T> reduced(ReduceSpec spec, const std::vector<std::vector<T>>& inputs) {
  std::vector<ReduceInput> views;
  for (const std::vector<T>& input : inputs) views.push_back({input.data()});
  std::vector<T> result(inputs[0].size());
  std::vector<T> oracle(inputs[0].size());
  reduce(spec, result.data(), views, result.size());
  reduceScalar(spec, oracle.data(), views, oracle.size());
  if (std::memcmp(result.data(), oracle.data(), result.size() * sizeof(T)) != 0) return {};
  return result;
}

}  // namespace byway::testing_util
