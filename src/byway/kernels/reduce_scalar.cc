// SPDX-License-Identifier: BSD-3-Clause
// The oracle: element by element, with one fold for integers, one for real sums and products, one
// for complex numbers and one for the order of floats. It shares no folding code with reduce.cc.
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "byway/kernels/convert.h"
#include "byway/kernels/float_environment.h"
#include "byway/kernels/reduce.h"

namespace byway {
namespace {

static_assert(std::endian::native == std::endian::little, "narrow loads and stores assume this");

std::uint64_t loadBits(const void* base, std::size_t index, std::size_t bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const std::byte*>(base) + index * bytes, bytes);
  return bits;
}

void storeBits(void* base, std::size_t index, std::size_t bytes, std::uint64_t bits) {
  std::memcpy(static_cast<std::byte*>(base) + index * bytes, &bits, bytes);
}

DType typeOf(const ReduceSpec& spec, Width width) {
  return width == Width::Element ? spec.dtype : accumulatorOf(spec.dtype, spec.op);
}

bool isSigned(DType type) {
  return type == DType::Int8 || type == DType::Int16 || type == DType::Int32 ||
         type == DType::Int64;
}

double decode(DType type, std::uint64_t bits) {
  switch (type) {
    case DType::Float16:
      return toFloat<Float16Format>(static_cast<std::uint16_t>(bits));
    case DType::BFloat16:
      return toFloat<BFloat16Format>(static_cast<std::uint16_t>(bits));
    case DType::Float8E4M3FN:
      return toFloat<E4M3FNFormat>(static_cast<std::uint8_t>(bits));
    case DType::Float8E5M2:
      return toFloat<E5M2Format>(static_cast<std::uint8_t>(bits));
    case DType::Float8E4M3FNUZ:
      return toFloat<E4M3FNUZFormat>(static_cast<std::uint8_t>(bits));
    case DType::Float8E5M2FNUZ:
      return toFloat<E5M2FNUZFormat>(static_cast<std::uint8_t>(bits));
    case DType::Float32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case DType::Float64:
      return std::bit_cast<double>(bits);
    case DType::Bool:
    case DType::UInt8:
    case DType::UInt16:
    case DType::UInt32:
    case DType::UInt64:
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Int64:
    case DType::Complex64:
    case DType::Complex128:
      break;
  }
  return 0;
}

std::uint64_t encode(DType type, double value) {
  const auto single = static_cast<float>(value);  // exact: narrow types accumulate in float32
  switch (type) {
    case DType::Float16:
      return fromFloat<Float16Format>(single);
    case DType::BFloat16:
      return fromFloat<BFloat16Format>(single);
    case DType::Float8E4M3FN:
      return fromFloat<E4M3FNFormat>(single);
    case DType::Float8E5M2:
      return fromFloat<E5M2Format>(single);
    case DType::Float8E4M3FNUZ:
      return fromFloat<E4M3FNUZFormat>(single);
    case DType::Float8E5M2FNUZ:
      return fromFloat<E5M2FNUZFormat>(single);
    case DType::Float32:
      return std::isnan(value) ? kFloat32NaN : std::bit_cast<std::uint32_t>(single);
    case DType::Float64:
      return std::isnan(value) ? 0x7ff8000000000000u : std::bit_cast<std::uint64_t>(value);
    case DType::Bool:
    case DType::UInt8:
    case DType::UInt16:
    case DType::UInt32:
    case DType::UInt64:
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Int64:
    case DType::Complex64:
    case DType::Complex128:
      break;
  }
  return 0;
}

// Integers and bool: 64-bit values, wrapped to the accumulator's width after every step.
struct IntegerFold {
  using Value = std::uint64_t;
  const ReduceSpec& spec;

  Value extend(Value bits, DType type) const {
    if (spec.dtype == DType::Bool) return (bits & 0xff) != 0 ? 1 : 0;
    const auto unused = static_cast<int>(64 - 8 * sizeOf(type));
    if (!isSigned(type)) return (bits << unused) >> unused;
    return static_cast<Value>(static_cast<std::int64_t>(bits << unused) >> unused);
  }

  Value load(const ReduceInput& input, std::size_t i) const {
    const DType type = typeOf(spec, input.width);
    return extend(loadBits(input.data, i, sizeOf(type)), type);
  }

  bool less(Value a, Value b) const {
    if (!isSigned(spec.dtype)) return a < b;
    return static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b);
  }

  Value combine(Value a, Value b) const {
    switch (spec.op) {
      case ReduceOp::Sum:
      case ReduceOp::Avg:
      case ReduceOp::PremulSum:
        return a + b;
      case ReduceOp::Product:
        return a * b;
      case ReduceOp::Min:
        return less(b, a) ? b : a;
      case ReduceOp::Max:
        return less(a, b) ? b : a;
      case ReduceOp::BitAnd:
        return a & b;
      case ReduceOp::BitOr:
        return a | b;
      case ReduceOp::BitXor:
        return a ^ b;
    }
    return 0;
  }

  Value fold(Value a, Value b) const {
    return extend(combine(a, b), typeOf(spec, Width::Accumulator));
  }

  void store(void* to, std::size_t i, Value value) const {
    if (spec.op == ReduceOp::Avg && spec.to == Width::Element) {
      value =
          isSigned(spec.dtype)
              ? static_cast<Value>(static_cast<std::int64_t>(value) / std::int64_t{spec.divisor})
              : value / spec.divisor;
    }
    storeBits(to, i, sizeOf(typeOf(spec, spec.to)), value);
  }
};

// Sum, Avg, Product and PremulSum of real floats, in A = the accumulator.
template <class A>
struct RealFold {
  using Value = A;
  const ReduceSpec& spec;

  Value load(const ReduceInput& input, std::size_t i) const {
    const DType type = typeOf(spec, input.width);
    const auto value = static_cast<A>(decode(type, loadBits(input.data, i, sizeOf(type))));
    const bool scaled = spec.op == ReduceOp::PremulSum && input.width == Width::Element;
    return scaled ? value * static_cast<A>(spec.factor.real()) : value;
  }

  Value fold(Value a, Value b) const { return spec.op == ReduceOp::Product ? a * b : a + b; }

  void store(void* to, std::size_t i, Value value) const {
    const bool divides = spec.op == ReduceOp::Avg && spec.to == Width::Element;
    const DType type = typeOf(spec, spec.to);
    storeBits(to, i, sizeOf(type),
              encode(type, divides ? value / static_cast<A>(spec.divisor) : value));
  }
};

template <class A>
struct ComplexFold {
  struct Value {
    A real, imag;
  };
  const ReduceSpec& spec;

  static Value multiply(Value a, Value b) {
    return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
  }

  Value load(const ReduceInput& input, std::size_t i) const {
    Value value;
    std::memcpy(&value, static_cast<const std::byte*>(input.data) + i * sizeof(Value),
                sizeof(Value));
    if (spec.op != ReduceOp::PremulSum || input.width == Width::Accumulator) return value;
    return multiply(value,
                    {static_cast<A>(spec.factor.real()), static_cast<A>(spec.factor.imag())});
  }

  Value fold(Value a, Value b) const {
    if (spec.op == ReduceOp::Product) return multiply(a, b);
    return {a.real + b.real, a.imag + b.imag};
  }

  void store(void* to, std::size_t i, Value value) const {
    const bool divides = spec.op == ReduceOp::Avg && spec.to == Width::Element;
    const A divisor = divides ? static_cast<A>(spec.divisor) : A{1};
    const DType part = sizeof(A) == sizeof(float) ? DType::Float32 : DType::Float64;
    storeBits(to, 2 * i, sizeof(A), encode(part, value.real / divisor));
    storeBits(to, 2 * i + 1, sizeof(A), encode(part, value.imag / divisor));
  }
};

// Min and Max of real floats choose one operand's bits.
struct OrderFold {
  struct Value {
    std::uint64_t bits;
    double number;
  };
  const ReduceSpec& spec;

  Value load(const ReduceInput& input, std::size_t i) const {
    const std::uint64_t bits = loadBits(input.data, i, sizeOf(spec.dtype));
    return {bits, decode(spec.dtype, bits)};
  }

  Value fold(Value a, Value b) const {
    if (std::isnan(a.number)) return a;
    if (std::isnan(b.number)) return b;
    const bool better = spec.op == ReduceOp::Min ? b.number < a.number : b.number > a.number;
    return better ? b : a;
  }

  void store(void* to, std::size_t i, Value value) const {
    storeBits(to, i, sizeOf(spec.dtype), value.bits);
  }
};

template <class Fold>
void run(const ReduceSpec& spec, void* to, std::span<const ReduceInput> inputs, std::size_t count) {
  const Fold fold{spec};
  for (std::size_t i = 0; i < count; ++i) {
    auto value = fold.load(inputs[0], i);
    for (const ReduceInput& input : inputs.subspan(1))
      value = fold.fold(value, fold.load(input, i));
    fold.store(to, i, value);
  }
}

using Run = void (*)(const ReduceSpec&, void*, std::span<const ReduceInput>, std::size_t);

Run foldFor(DType dtype, ReduceOp op) {
  switch (dtype) {
    case DType::Bool:
    case DType::UInt8:
    case DType::UInt16:
    case DType::UInt32:
    case DType::UInt64:
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Int64:
      return run<IntegerFold>;
    case DType::Complex64:
      return run<ComplexFold<float>>;
    case DType::Complex128:
      return run<ComplexFold<double>>;
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
    case DType::Float64:
    case DType::Float8E4M3FN:
    case DType::Float8E5M2:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2FNUZ:
      break;
  }
  if (op == ReduceOp::Min || op == ReduceOp::Max) return run<OrderFold>;
  return dtype == DType::Float64 ? run<RealFold<double>> : run<RealFold<float>>;
}

}  // namespace

void reduceScalar(const ReduceSpec& spec, void* to, std::span<const ReduceInput> inputs,
                  std::size_t count) {
  assert(whyUnsupported(spec.dtype, spec.op) == nullptr);
  assert(!inputs.empty() && spec.divisor > 0);
  const DefaultFloatEnvironment environment;
  foldFor(spec.dtype, spec.op)(spec, to, inputs, count);
}

}  // namespace byway
