// SPDX-License-Identifier: BSD-3-Clause
#include "byway/kernels/tile_kernels.h"

namespace byway {
namespace {

// On truth values every op is one of the three bitwise ones.
ReduceOp onBool(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Max:
    case ReduceOp::BitOr:
      return ReduceOp::BitOr;
    case ReduceOp::Product:
    case ReduceOp::Min:
    case ReduceOp::BitAnd:
      return ReduceOp::BitAnd;
    case ReduceOp::BitXor:
      return ReduceOp::BitXor;
    case ReduceOp::Avg:
    case ReduceOp::PremulSum:
      return op;  // unsupported
  }
  return op;
}

bool isArithmetic(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Avg:
    case ReduceOp::Product:
    case ReduceOp::PremulSum:
      return true;
    case ReduceOp::Min:
    case ReduceOp::Max:
    case ReduceOp::BitAnd:
    case ReduceOp::BitOr:
    case ReduceOp::BitXor:
      return false;
  }
  return false;
}

template <class Kernel>
Kernel firstOf(Kernel preferred, Kernel fallback) {
  return preferred != nullptr ? preferred : fallback;
}

TileKernels boolKernels(ReduceOp op) {
  TileKernels kernels;
  kernels.combine = simdCombine(DType::UInt8, onBool(op));
  kernels.loadElement = genericBool();
  kernels.loadAccumulator = genericBool();
  return kernels;
}

}  // namespace

TileKernels tileKernels(DType dtype, ReduceOp op) {
  if (dtype == DType::Bool) return boolKernels(op);
  const DType accumulator = accumulatorOf(dtype, op);
  TileKernels kernels;
  kernels.combine = firstOf(simdCombine(accumulator, op), genericCombine(accumulator, op));
  if (!isArithmetic(op)) return kernels;
  // Which of two NaNs an addition returns is the compiler's choice, so results get one NaN.
  kernels.storeAccumulator = simdCanonicalNaN(accumulator);
  kernels.storeElement = kernels.storeAccumulator;
  if (accumulator != dtype) {
    kernels.loadElement = firstOf(simdWiden(dtype), genericWiden(dtype));
    kernels.storeElement = firstOf(simdNarrow(dtype), genericNarrow(dtype));
  }
  if (op == ReduceOp::PremulSum) {
    kernels.scale = firstOf(simdScale(accumulator), genericScale(accumulator));
  }
  if (op == ReduceOp::Avg) {
    kernels.divide = firstOf(simdDivide(accumulator), genericDivide(accumulator));
  }
  return kernels;
}

}  // namespace byway
