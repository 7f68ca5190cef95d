// SPDX-License-Identifier: BSD-3-Clause
// Loops that fold k inputs in one pass over memory, one a pair of dtype and op, chosen once a call.
#pragma once

#include <cstddef>
#include <span>

#include "byway/kernels/reduce.h"

namespace byway {

// What `reduce` does, for any alignment. With `streams` the result goes past the caches; then `to`
// must be none of the inputs.
using Fold = void (*)(const ReduceSpec& spec, void* to, std::span<const ReduceInput> inputs,
                      std::size_t count, bool streams);

// Vector forms for the best instruction set of this CPU; null for pairs of another family.
Fold ownWidthFold(DType dtype, ReduceOp op);    // the accumulator is the element's own type
Fold smallFloatFold(DType dtype, ReduceOp op);  // 16- and 8-bit floats, in float32
Fold complexFold(DType dtype, ReduceOp op);     // products and PremulSum; sums are those of parts

// Averages of integers, in 64 bit: no vector form, division has none.
Fold integerAverageFold(DType dtype);

}  // namespace byway
