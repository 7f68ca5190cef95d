// SPDX-License-Identifier: BSD-3-Clause
// Loops over one tile of elements, from which `reduce` composes every dtype and op. They are chosen
// once per call; all pointers are aligned to the element's (for complex: the component's) size.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include "byway/base/types.h"

namespace byway {

// out[i] = a[i] (op) b[i]; `out` may be `a` or `b`. `a` is the earlier operand.
using Combine = void (*)(void* out, const void* a, const void* b, std::size_t count);
// out[i] = convert(in[i]); in place only where both sides have the same width.
using Convert = void (*)(void* out, const void* in, std::size_t count);
using Scale = void (*)(void* out, const void* in, std::complex<double> factor, std::size_t count);
using Divide = void (*)(void* out, const void* in, std::uint32_t divisor, std::size_t count);

// Null members are steps that the pair does not need.
struct TileKernels {
  Combine combine = nullptr;
  Convert loadElement = nullptr;      // Element -> Accumulator
  Convert loadAccumulator = nullptr;  // Accumulator -> Accumulator
  Scale scale = nullptr;              // PremulSum, on raw inputs
  Divide divide = nullptr;            // Avg, before storing an Element
  Convert storeElement = nullptr;     // Accumulator -> Element
  Convert storeAccumulator = nullptr;
};

// The kernels of a supported pair, for the best instruction set of this CPU.
TileKernels tileKernels(DType dtype, ReduceOp op);

// Highway forms; null where the type has none and the generic form serves.
Combine simdCombine(DType accumulator, ReduceOp op);
Convert simdWiden(DType dtype);               // float16, bfloat16 -> float32
Convert simdNarrow(DType dtype);              // float32 -> float16, bfloat16
Convert simdCanonicalNaN(DType accumulator);  // float32, float64 and their complex pairs
Scale simdScale(DType accumulator);           // float32, float64
Divide simdDivide(DType accumulator);         // as simdCanonicalNaN

// Plain loops for the rest.
Combine genericCombine(DType accumulator, ReduceOp op);
Convert genericWiden(DType dtype);
Convert genericNarrow(DType dtype);
Convert genericBool();
Scale genericScale(DType accumulator);
Divide genericDivide(DType accumulator);

}  // namespace byway
