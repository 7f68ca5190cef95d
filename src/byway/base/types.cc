// SPDX-License-Identifier: BSD-3-Clause
#include "byway/base/types.h"

namespace byway {

std::size_t sizeOf(DType dtype) {
  switch (dtype) {
#define BYWAY_X(id, name, bytes) \
  case DType::id:                \
    return bytes;
    BYWAY_DTYPES(BYWAY_X)
#undef BYWAY_X
  }
  return 0;
}

const char* toString(DType dtype) {
  switch (dtype) {
#define BYWAY_X(id, name, bytes) \
  case DType::id:                \
    return name;
    BYWAY_DTYPES(BYWAY_X)
#undef BYWAY_X
  }
  return "?";
}

const char* toString(ReduceOp op) {
  switch (op) {
#define BYWAY_X(id, name) \
  case ReduceOp::id:      \
    return name;
    BYWAY_REDUCE_OPS(BYWAY_X)
#undef BYWAY_X
  }
  return "?";
}

const char* toString(Collective collective) {
  switch (collective) {
#define BYWAY_X(id, name, reduces) \
  case Collective::id:             \
    return name;
    BYWAY_COLLECTIVES(BYWAY_X)
#undef BYWAY_X
  }
  return "?";
}

std::optional<DType> parseDType(std::string_view text) {
#define BYWAY_X(id, name, bytes) \
  if (text == name) return DType::id;
  BYWAY_DTYPES(BYWAY_X)
#undef BYWAY_X
  return std::nullopt;
}

std::optional<ReduceOp> parseReduceOp(std::string_view text) {
#define BYWAY_X(id, name) \
  if (text == name) return ReduceOp::id;
  BYWAY_REDUCE_OPS(BYWAY_X)
#undef BYWAY_X
  return std::nullopt;
}

std::optional<Collective> parseCollective(std::string_view text) {
#define BYWAY_X(id, name, reduces) \
  if (text == name) return Collective::id;
  BYWAY_COLLECTIVES(BYWAY_X)
#undef BYWAY_X
  return std::nullopt;
}

bool reduces(Collective collective) {
  switch (collective) {
#define BYWAY_X(id, name, reduces) \
  case Collective::id:             \
    return reduces;
    BYWAY_COLLECTIVES(BYWAY_X)
#undef BYWAY_X
  }
  return false;
}

bool hasRoot(Collective collective) {
  switch (collective) {
    case Collective::Broadcast:
    case Collective::Reduce:
    case Collective::Scatter:
    case Collective::Gather:
      return true;
    case Collective::AllReduce:
    case Collective::AllGather:
    case Collective::ReduceScatter:
    case Collective::AllToAll:
      return false;
  }
  return false;
}

namespace {

enum class Kind { Bool, Unsigned, Signed, SmallFloat, Float, Complex };

Kind kindOf(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return Kind::Bool;
    case DType::UInt8:
    case DType::UInt16:
    case DType::UInt32:
    case DType::UInt64:
      return Kind::Unsigned;
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Int64:
      return Kind::Signed;
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float8E4M3FN:
    case DType::Float8E5M2:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2FNUZ:
      return Kind::SmallFloat;
    case DType::Float32:
    case DType::Float64:
      return Kind::Float;
    case DType::Complex64:
    case DType::Complex128:
      return Kind::Complex;
  }
  return Kind::Bool;
}

}  // namespace

DType accumulatorOf(DType dtype, ReduceOp op) {
  const Kind kind = kindOf(dtype);
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Product:
    case ReduceOp::PremulSum:
      return kind == Kind::SmallFloat ? DType::Float32 : dtype;
    case ReduceOp::Avg:
      if (kind == Kind::SmallFloat) return DType::Float32;
      if (kind == Kind::Signed) return DType::Int64;
      if (kind == Kind::Unsigned) return DType::UInt64;
      return dtype;
    case ReduceOp::Min:
    case ReduceOp::Max:
    case ReduceOp::BitAnd:
    case ReduceOp::BitOr:
    case ReduceOp::BitXor:
      return dtype;
  }
  return dtype;
}

const char* whyUnsupported(DType dtype, ReduceOp op) {
  const Kind kind = kindOf(dtype);
  const bool isFloat = kind == Kind::SmallFloat || kind == Kind::Float;
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Product:
      return nullptr;
    case ReduceOp::Avg:
      return kind == Kind::Bool ? "averages need numbers, not bool" : nullptr;
    case ReduceOp::PremulSum:
      return isFloat || kind == Kind::Complex ? nullptr
                                              : "premul_sum needs a floating or complex type";
    case ReduceOp::Min:
    case ReduceOp::Max:
      return kind == Kind::Complex ? "complex numbers have no order" : nullptr;
    case ReduceOp::BitAnd:
    case ReduceOp::BitOr:
    case ReduceOp::BitXor:
      return isFloat || kind == Kind::Complex ? "bitwise operations need integers or bool"
                                              : nullptr;
  }
  return nullptr;
}

}  // namespace byway
