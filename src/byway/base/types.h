// SPDX-License-Identifier: BSD-3-Clause
// The closed lists of element types and reductions. Every switch on them is exhaustive or made
// from the list, so that the compiler finds a gap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace byway {

// X(enumerator, name, bytes)
#define BYWAY_DTYPES(X)                   \
  X(Bool, "bool", 1)                      \
  X(UInt8, "uint8", 1)                    \
  X(UInt16, "uint16", 2)                  \
  X(UInt32, "uint32", 4)                  \
  X(UInt64, "uint64", 8)                  \
  X(Int8, "int8", 1)                      \
  X(Int16, "int16", 2)                    \
  X(Int32, "int32", 4)                    \
  X(Int64, "int64", 8)                    \
  X(Float16, "float16", 2)                \
  X(BFloat16, "bfloat16", 2)              \
  X(Float32, "float32", 4)                \
  X(Float64, "float64", 8)                \
  X(Float8E4M3FN, "float8_e4m3fn", 1)     \
  X(Float8E5M2, "float8_e5m2", 1)         \
  X(Float8E4M3FNUZ, "float8_e4m3fnuz", 1) \
  X(Float8E5M2FNUZ, "float8_e5m2fnuz", 1) \
  X(Complex64, "complex64", 8)            \
  X(Complex128, "complex128", 16)

enum class DType : std::uint8_t {
#define BYWAY_X(id, name, bytes) id,
  BYWAY_DTYPES(BYWAY_X)
#undef BYWAY_X
};

// X(enumerator, name)
#define BYWAY_REDUCE_OPS(X) \
  X(Sum, "sum")             \
  X(Avg, "avg")             \
  X(Product, "product")     \
  X(Min, "min")             \
  X(Max, "max")             \
  X(BitAnd, "band")         \
  X(BitOr, "bor")           \
  X(BitXor, "bxor")         \
  X(PremulSum, "premul_sum")

enum class ReduceOp : std::uint8_t {
#define BYWAY_X(id, name) id,
  BYWAY_REDUCE_OPS(BYWAY_X)
#undef BYWAY_X
};

// X(enumerator, name, reduces)
#define BYWAY_COLLECTIVES(X)               \
  X(AllReduce, "allreduce", true)          \
  X(AllGather, "all-gather", false)        \
  X(ReduceScatter, "reduce-scatter", true) \
  X(AllToAll, "all-to-all", false)         \
  X(Broadcast, "broadcast", false)         \
  X(Reduce, "reduce", true)                \
  X(Scatter, "scatter", false)             \
  X(Gather, "gather", false)

enum class Collective : std::uint8_t {
#define BYWAY_X(id, name, reduces) id,
  BYWAY_COLLECTIVES(BYWAY_X)
#undef BYWAY_X
};

// How wide a value is where it lies or travels.
enum class Width : std::uint8_t {
  Element,      // the caller's dtype: a raw contribution, or a finished (rounded) result
  Accumulator,  // accumulatorOf(dtype, op): an unfinished partial result
};

// Bytes of one element.
std::size_t sizeOf(DType dtype);
const char* toString(DType dtype);
const char* toString(ReduceOp op);
const char* toString(Collective collective);
std::optional<DType> parseDType(std::string_view name);
std::optional<ReduceOp> parseReduceOp(std::string_view name);
std::optional<Collective> parseCollective(std::string_view name);

// True for allreduce, reduce-scatter and reduce.
bool reduces(Collective collective);
// True for broadcast, reduce, scatter and gather, which have a root.
bool hasRoot(Collective collective);

// The type that partial sums are kept and sent in: float32 for sums and products of 16- and 8-bit
// floats, 64 bit for integer averages, else the element's own type.
DType accumulatorOf(DType dtype, ReduceOp op);

// Why `op` cannot be applied to `dtype` ("bitwise operations need integers or bool"), or nullptr.
const char* whyUnsupported(DType dtype, ReduceOp op);

}  // namespace byway
