// SPDX-License-Identifier: BSD-3-Clause
// Plain loops for what has no vector form; the compiler vectorises most of them.
#include <array>
#include <type_traits>

#include "byway/kernels/convert.h"
#include "byway/kernels/tile_kernels.h"

namespace byway {
namespace {

// Unsigned, so that overflow wraps, and never narrower than int, to which it would be promoted.
template <class T>
void integerProduct(void* outData, const void* aData, const void* bData, std::size_t count) {
  using Wide = std::conditional_t<(sizeof(T) < 4), std::uint32_t, T>;
  auto* out = static_cast<T*>(outData);
  const auto* a = static_cast<const T*>(aData);
  const auto* b = static_cast<const T*>(bData);
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = static_cast<T>(static_cast<Wide>(a[i]) * static_cast<Wide>(b[i]));
  }
}

// The textbook formula, as PyTorch has it: no recovery of infinities, each step rounded.
template <class T>
void multiplyComplex(T* out, T aReal, T aImag, T bReal, T bImag) {
  out[0] = aReal * bReal - aImag * bImag;
  out[1] = aReal * bImag + aImag * bReal;
}

template <class T>
void complexProduct(void* outData, const void* aData, const void* bData, std::size_t count) {
  auto* out = static_cast<T*>(outData);
  const auto* a = static_cast<const T*>(aData);
  const auto* b = static_cast<const T*>(bData);
  for (std::size_t i = 0; i < 2 * count; i += 2) {
    multiplyComplex(out + i, a[i], a[i + 1], b[i], b[i + 1]);
  }
}

template <class T>
void complexScale(void* outData, const void* inData, std::complex<double> factor,
                  std::size_t count) {
  auto* out = static_cast<T*>(outData);
  const auto* in = static_cast<const T*>(inData);
  const T real = static_cast<T>(factor.real());
  const T imag = static_cast<T>(factor.imag());
  for (std::size_t i = 0; i < 2 * count; i += 2) {
    multiplyComplex(out + i, in[i], in[i + 1], real, imag);
  }
}

template <class Out, class In>
void convertIntegers(void* outData, const void* inData, std::size_t count) {
  auto* out = static_cast<Out*>(outData);
  const auto* in = static_cast<const In*>(inData);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<Out>(in[i]);
}

template <class T>
void divideIntegers(void* outData, const void* inData, std::uint32_t divisor, std::size_t count) {
  auto* out = static_cast<T*>(outData);
  const auto* in = static_cast<const T*>(inData);
  for (std::size_t i = 0; i < count; ++i) out[i] = in[i] / static_cast<T>(divisor);
}

void normaliseBool(void* outData, const void* inData, std::size_t count) {
  auto* out = static_cast<std::uint8_t*>(outData);
  const auto* in = static_cast<const std::uint8_t*>(inData);
  for (std::size_t i = 0; i < count; ++i) out[i] = in[i] != 0 ? 1 : 0;
}

template <class Format>
constexpr std::array<float, 256> makeFloat8Table() {
  std::array<float, 256> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = toFloat<Format>(static_cast<std::uint8_t>(i));
  }
  return table;
}

template <class Format>
void widenFloat8(void* outData, const void* inData, std::size_t count) {
  static constexpr std::array<float, 256> kTable = makeFloat8Table<Format>();
  auto* out = static_cast<float*>(outData);
  const auto* in = static_cast<const std::uint8_t*>(inData);
  for (std::size_t i = 0; i < count; ++i) out[i] = kTable[in[i]];
}

template <class Format>
void narrowFloat8(void* outData, const void* inData, std::size_t count) {
  auto* out = static_cast<std::uint8_t*>(outData);
  const auto* in = static_cast<const float*>(inData);
  for (std::size_t i = 0; i < count; ++i) out[i] = fromFloat<Format>(in[i]);
}

Combine product(DType type) {
  if (type == DType::Complex64) return complexProduct<float>;
  if (type == DType::Complex128) return complexProduct<double>;
  switch (sizeOf(type)) {
    case 1:
      return integerProduct<std::uint8_t>;
    case 2:
      return integerProduct<std::uint16_t>;
    case 4:
      return integerProduct<std::uint32_t>;
    case 8:
      return integerProduct<std::uint64_t>;
  }
  return nullptr;
}

}  // namespace

Combine genericCombine(DType accumulator, ReduceOp op) {
  return op == ReduceOp::Product ? product(accumulator) : nullptr;
}

Convert genericWiden(DType dtype) {
  switch (dtype) {
    case DType::UInt8:
      return convertIntegers<std::uint64_t, std::uint8_t>;
    case DType::UInt16:
      return convertIntegers<std::uint64_t, std::uint16_t>;
    case DType::UInt32:
      return convertIntegers<std::uint64_t, std::uint32_t>;
    case DType::Int8:
      return convertIntegers<std::int64_t, std::int8_t>;
    case DType::Int16:
      return convertIntegers<std::int64_t, std::int16_t>;
    case DType::Int32:
      return convertIntegers<std::int64_t, std::int32_t>;
    case DType::Float8E4M3FN:
      return widenFloat8<E4M3FNFormat>;
    case DType::Float8E5M2:
      return widenFloat8<E5M2Format>;
    case DType::Float8E4M3FNUZ:
      return widenFloat8<E4M3FNUZFormat>;
    case DType::Float8E5M2FNUZ:
      return widenFloat8<E5M2FNUZFormat>;
    case DType::Bool:
    case DType::UInt64:
    case DType::Int64:
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
    case DType::Float64:
    case DType::Complex64:
    case DType::Complex128:
      return nullptr;
  }
  return nullptr;
}

Convert genericNarrow(DType dtype) {
  switch (dtype) {
    case DType::UInt8:
      return convertIntegers<std::uint8_t, std::uint64_t>;
    case DType::UInt16:
      return convertIntegers<std::uint16_t, std::uint64_t>;
    case DType::UInt32:
      return convertIntegers<std::uint32_t, std::uint64_t>;
    case DType::Int8:
      return convertIntegers<std::int8_t, std::int64_t>;
    case DType::Int16:
      return convertIntegers<std::int16_t, std::int64_t>;
    case DType::Int32:
      return convertIntegers<std::int32_t, std::int64_t>;
    case DType::Float8E4M3FN:
      return narrowFloat8<E4M3FNFormat>;
    case DType::Float8E5M2:
      return narrowFloat8<E5M2Format>;
    case DType::Float8E4M3FNUZ:
      return narrowFloat8<E4M3FNUZFormat>;
    case DType::Float8E5M2FNUZ:
      return narrowFloat8<E5M2FNUZFormat>;
    case DType::Bool:
    case DType::UInt64:
    case DType::Int64:
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
    case DType::Float64:
    case DType::Complex64:
    case DType::Complex128:
      return nullptr;
  }
  return nullptr;
}

Convert genericBool() { return normaliseBool; }

Scale genericScale(DType accumulator) {
  if (accumulator == DType::Complex64) return complexScale<float>;
  if (accumulator == DType::Complex128) return complexScale<double>;
  return nullptr;
}

Divide genericDivide(DType accumulator) {
  if (accumulator == DType::Int64) return divideIntegers<std::int64_t>;
  if (accumulator == DType::UInt64) return divideIntegers<std::uint64_t>;
  return nullptr;
}

}  // namespace byway
