// SPDX-License-Identifier: BSD-3-Clause
#include "byway/kernels/reduce.h"

#include <algorithm>
#include <cassert>

#include "byway/kernels/float_environment.h"
#include "byway/kernels/fold.h"

namespace byway {
namespace {

// Every supported pair is of one family.
Fold foldFor(DType dtype, ReduceOp op) {
  if (const Fold own = ownWidthFold(dtype, op)) return own;
  if (const Fold small = smallFloatFold(dtype, op)) return small;
  if (const Fold complex = complexFold(dtype, op)) return complex;
  return integerAverageFold(dtype);
}

// From here on results go past the caches, which could not hold them: a store then costs no read of
// the line that it overwrites. Inputs that are written over are in the caches anyway.
constexpr std::uint64_t kStreamedSumBytes = std::uint64_t{32} << 20;

bool streams(const ReduceSpec& spec, const void* to, std::span<const ReduceInput> inputs,
             std::size_t count) {
  const DType type = spec.to == Width::Element ? spec.dtype : accumulatorOf(spec.dtype, spec.op);
  if (std::max<std::uint64_t>(count * sizeOf(type), spec.wholeBytes) < kStreamedSumBytes)
    return false;
  return std::none_of(inputs.begin(), inputs.end(),
                      [&](const ReduceInput& input) { return input.data == to; });
}

}  // namespace

void reduce(const ReduceSpec& spec, void* to, std::span<const ReduceInput> inputs,
            std::size_t count) {
  assert(whyUnsupported(spec.dtype, spec.op) == nullptr);
  assert(!inputs.empty() && spec.divisor > 0);
  const DefaultFloatEnvironment environment;
  foldFor(spec.dtype, spec.op)(spec, to, inputs, count, streams(spec, to, inputs, count));
}

}  // namespace byway
