// SPDX-License-Identifier: BSD-3-Clause
// Reductions of k inputs in one pass, with the numeric rules of docs/reductions.md.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>

#include "byway/base/types.h"

namespace byway {

struct ReduceInput {
  const void* data;
  Width width = Width::Element;  // Element inputs are raw contributions (PremulSum multiplies them)
};

struct ReduceSpec {
  DType dtype;
  ReduceOp op;
  Width to = Width::Element;  // Element: divide (Avg) and round once; Accumulator: keep the partial
  std::uint32_t divisor = 1;  // used by Avg when `to` is Element
  std::complex<double> factor{1.0, 0.0};  // used by PremulSum on raw inputs; real types use .real()
  // Bytes of the whole result where this call makes a piece of it: decides how it is stored, not
  // what.
  std::uint64_t wholeBytes = 0;
};

// to[i] = finish(inputs[0][i] (+) inputs[1][i] (+) ...), folded from the left, for i < count.
// `to` may be the same address as one or more inputs of the same width (element by element, the
// result is as if all inputs were read first); it must not overlap an input in any other way.
// A single input is converted (bool becomes 0 or 1, raw PremulSum is multiplied, Avg divides).
// dtype and op must be a supported pair (whyUnsupported is null), with at least one input and a
// divisor of at least 1; addresses may have any alignment. Never throws.
void reduce(const ReduceSpec& spec, void* to, std::span<const ReduceInput> inputs,
            std::size_t count);

// The same by a plain loop over elements: the oracle for `reduce`.
void reduceScalar(const ReduceSpec& spec, void* to, std::span<const ReduceInput> inputs,
                  std::size_t count);

}  // namespace byway
