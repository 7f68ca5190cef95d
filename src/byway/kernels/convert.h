// SPDX-License-Identifier: BSD-3-Clause
// 16- and 8-bit floating-point formats and their conversion to and from float32, on integers:
// widening is exact, narrowing rounds to nearest, ties to even (docs/reductions.md).
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace byway {

// How a format spends its largest magnitudes.
enum class FloatKind {
  Ieee,    // infinities; overflow gives infinity
  Finite,  // no infinity, NaN is the largest magnitude; overflow gives NaN
  Fnuz,    // no infinity, no negative zero (its bits are the one NaN); overflow gives NaN
};

template <class BitsType, int kMantissa, int kBiasValue, FloatKind kKindValue>
struct FloatFormat {
  using Bits = BitsType;
  static constexpr int kMantissaBits = kMantissa;
  static constexpr int kBias = kBiasValue;
  static constexpr FloatKind kKind = kKindValue;
  static constexpr std::uint32_t kSign = 1u << (8 * sizeof(Bits) - 1);
  static constexpr std::uint32_t kMagnitude = kSign - 1;
  static constexpr std::uint32_t kInfinity = (kMagnitude >> kMantissa) << kMantissa;  // Ieee only
  // The largest magnitude that is no NaN, infinity included.
  static constexpr std::uint32_t kMaxOrdered = kKindValue == FloatKind::Ieee     ? kInfinity
                                               : kKindValue == FloatKind::Finite ? kMagnitude - 1
                                                                                 : kMagnitude;
  // What every NaN that arithmetic produces is stored as.
  static constexpr Bits kNaN = static_cast<Bits>(
      kKindValue == FloatKind::Fnuz     ? kSign
      : kKindValue == FloatKind::Finite ? kMagnitude
      : sizeof(Bits) == 1               ? kMagnitude  // as PyTorch: all mantissa bits
                                        : kInfinity | (1u << (kMantissa - 1)));
};

using Float16Format = FloatFormat<std::uint16_t, 10, 15, FloatKind::Ieee>;
using BFloat16Format = FloatFormat<std::uint16_t, 7, 127, FloatKind::Ieee>;
using E4M3FNFormat = FloatFormat<std::uint8_t, 3, 7, FloatKind::Finite>;
using E5M2Format = FloatFormat<std::uint8_t, 2, 15, FloatKind::Ieee>;
using E4M3FNUZFormat = FloatFormat<std::uint8_t, 3, 8, FloatKind::Fnuz>;
using E5M2FNUZFormat = FloatFormat<std::uint8_t, 2, 16, FloatKind::Fnuz>;

inline constexpr std::uint32_t kFloat32Infinity = 0x7f800000u;
inline constexpr std::uint32_t kFloat32NaN = 0x7fc00000u;

template <class Format>
constexpr bool isNaN(typename Format::Bits bits) {
  if constexpr (Format::kKind == FloatKind::Fnuz) return bits == Format::kNaN;
  return (bits & Format::kMagnitude) > Format::kMaxOrdered;
}

// Exact. Every NaN becomes the quiet NaN 0x7fc00000.
template <class Format>
constexpr float toFloat(typename Format::Bits bits) {
  if (isNaN<Format>(bits)) return std::bit_cast<float>(kFloat32NaN);
  if constexpr (std::is_same_v<Format, BFloat16Format>) {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
  } else {
    const std::uint32_t magnitude = bits & Format::kMagnitude;
    const std::uint32_t sign = (bits & Format::kSign) != 0 ? 0x80000000u : 0u;
    if (magnitude == 0) return std::bit_cast<float>(sign);
    if (Format::kKind == FloatKind::Ieee && magnitude == Format::kInfinity) {
      return std::bit_cast<float>(sign | kFloat32Infinity);
    }
    std::uint32_t exponent = magnitude >> Format::kMantissaBits;
    std::uint32_t mantissa = magnitude & ((1u << Format::kMantissaBits) - 1);
    if (exponent == 0) {  // subnormal: shift its leading bit to where the implicit one stands
      const int shift = Format::kMantissaBits + 1 - std::bit_width(mantissa);
      mantissa = (mantissa << shift) & ((1u << Format::kMantissaBits) - 1);
      exponent = 1u - static_cast<std::uint32_t>(shift);  // wraps; the bias below brings it back
    }
    exponent += 127u - static_cast<std::uint32_t>(Format::kBias);
    return std::bit_cast<float>(sign | (exponent << 23) |
                                (mantissa << (23 - Format::kMantissaBits)));
  }
}

// `value` / 2^shift rounded to nearest, ties to even; 0 < shift.
constexpr std::uint32_t roundingShift(std::uint32_t value, int shift) {
  if (shift > 31) return 0;
  const std::uint32_t quotient = value >> shift;
  const std::uint32_t rest = value & ((1u << shift) - 1);
  const std::uint32_t half = 1u << (shift - 1);
  return quotient + (rest > half || (rest == half && (quotient & 1u) != 0) ? 1u : 0u);
}

template <class Format>
constexpr typename Format::Bits fromFloat(float value) {
  using Bits = typename Format::Bits;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > kFloat32Infinity) return Format::kNaN;
  std::uint32_t result = 0;
  if constexpr (std::is_same_v<Format, BFloat16Format>) {
    result = roundingShift(magnitude, 16);  // a carry runs into the exponent, up to infinity
  } else {
    const std::uint32_t fraction = magnitude & 0x7fffffu;
    const int exponent = static_cast<int>(magnitude >> 23) - 127 + Format::kBias;
    const std::uint32_t significand = magnitude >> 23 == 0 ? fraction : fraction | 0x800000u;
    // Below the smallest normal number the last place stays where it is: shift further instead.
    const int base = exponent < 1 ? 1 : exponent;
    const int shift = 23 - Format::kMantissaBits + (base - exponent);
    result = (static_cast<std::uint32_t>(base - 1) << Format::kMantissaBits) +
             roundingShift(significand, shift);
  }
  if (Format::kKind == FloatKind::Ieee) {
    if (result > Format::kInfinity) result = Format::kInfinity;
  } else if (result > Format::kMaxOrdered) {
    return Format::kNaN;
  }
  if (Format::kKind == FloatKind::Fnuz && result == 0) return 0;
  return static_cast<Bits>(result | ((bits >> 31) != 0 ? Format::kSign : 0u));
}

}  // namespace byway
