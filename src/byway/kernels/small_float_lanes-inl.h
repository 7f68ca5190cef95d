// SPDX-License-Identifier: BSD-3-Clause
// Vectors of 16- and 8-bit floats to and from float32, with the rules of convert.h, once per
// Highway target: include inside foreach_target files only. Highway 1.0.3 truncates in its bfloat16
// conversions, so rounding is written out on integers.
#if defined(BYWAY_KERNELS_SMALL_FLOAT_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BYWAY_KERNELS_SMALL_FLOAT_LANES_INL_H_
#undef BYWAY_KERNELS_SMALL_FLOAT_LANES_INL_H_
#else
#define BYWAY_KERNELS_SMALL_FLOAT_LANES_INL_H_
#endif

#include <bit>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"

#include "byway/kernels/convert.h"

HWY_BEFORE_NAMESPACE();
namespace byway {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::ScalableTag<float>;
using Bits = hn::RebindToUnsigned<Lanes>;
using SignedBits = hn::RebindToSigned<Lanes>;
using Floats = hn::Vec<Lanes>;
using Words = hn::Vec<Bits>;

// As many lanes of the format's bits as there are of float32.
template <class Format>
using Small = hn::Rebind<typename Format::Bits, Bits>;

// Both sides below 2^31.
HWY_INLINE hn::Mask<Bits> above(Words v, std::uint32_t bound) {
  return hn::RebindMask(Bits(), hn::Gt(hn::BitCast(SignedBits(), v),
                                       hn::Set(SignedBits(), static_cast<std::int32_t>(bound))));
}

// Widening, exact; a NaN becomes some NaN.

template <class Format>
HWY_INLINE Floats widen(hn::Vec<Small<Format>> small) {
  constexpr int kShift = 23 - Format::kMantissaBits;
  constexpr auto kRebias = static_cast<std::uint32_t>(127 - Format::kBias) << 23;
  // The value of a subnormal's last place: 2^(1 - bias - mantissa bits).
  constexpr float kLastPlace = std::bit_cast<float>(
      static_cast<std::uint32_t>(128 - Format::kBias - Format::kMantissaBits) << 23);
  const auto bits = hn::PromoteTo(Bits(), small);
  const auto magnitude = hn::And(bits, hn::Set(Bits(), Format::kMagnitude));
  const auto sign = hn::ShiftLeft<32 - 8 * sizeof(typename Format::Bits)>(
      hn::And(bits, hn::Set(Bits(), Format::kSign)));
  const auto shifted = hn::ShiftLeft<kShift>(magnitude);
  const auto normal = hn::Add(shifted, hn::Set(Bits(), kRebias));
  const auto subnormal =
      hn::BitCast(Bits(), hn::Mul(hn::ConvertTo(Lanes(), hn::BitCast(SignedBits(), magnitude)),
                                  hn::Set(Lanes(), kLastPlace)));
  constexpr std::uint32_t kMostSubnormal = (1u << Format::kMantissaBits) - 1;
  auto value = hn::IfThenElse(above(magnitude, kMostSubnormal), normal, subnormal);
  if constexpr (Format::kKind == FloatKind::Ieee) {  // infinities and NaNs
    const auto special = hn::Or(shifted, hn::Set(Bits(), kFloat32Infinity));
    value = hn::IfThenElse(above(magnitude, Format::kInfinity - 1), special, value);
  } else if constexpr (Format::kKind == FloatKind::Finite) {
    value = hn::IfThenElse(above(magnitude, Format::kMaxOrdered),
                           hn::Set(Bits(), std::uint32_t{kFloat32NaN}), value);
  } else {  // the bits of a negative zero
    const auto isNaNLane = hn::Eq(bits, hn::Set(Bits(), std::uint32_t{Format::kNaN}));
    value = hn::IfThenElse(isNaNLane, hn::Set(Bits(), std::uint32_t{kFloat32NaN}), value);
  }
  return hn::BitCast(Lanes(), hn::Or(sign, value));
}

template <>
HWY_INLINE Floats widen<BFloat16Format>(hn::Vec<Small<BFloat16Format>> small) {
  return hn::BitCast(Lanes(), hn::ShiftLeft<16>(hn::PromoteTo(Bits(), small)));
}

// Narrowing: to nearest, ties to even; every NaN becomes Format::kNaN.

// bits >> kShift, rounded to nearest even; no carry out of the word.
template <int kShift>
HWY_INLINE Words roundingShift(Words bits) {
  const auto odd = hn::And(hn::ShiftRight<kShift>(bits), hn::Set(Bits(), 1u));
  const auto bias = hn::Add(hn::Set(Bits(), (1u << (kShift - 1)) - 1), odd);
  return hn::ShiftRight<kShift>(hn::Add(bits, bias));
}

template <class Format>
HWY_INLINE hn::Vec<Small<Format>> narrow(Floats value) {
  constexpr int kShift = 23 - Format::kMantissaBits;
  constexpr auto kRebias = static_cast<std::uint32_t>(127 - Format::kBias) << Format::kMantissaBits;
  constexpr auto kLeastNormal = static_cast<std::uint32_t>(128 - Format::kBias) << 23;
  // The last place of this number is the format's smallest: adding it rounds where the format does.
  constexpr float kRounder = std::bit_cast<float>(
      static_cast<std::uint32_t>(128 - Format::kBias - Format::kMantissaBits + 23) << 23);
  const auto bits = hn::BitCast(Bits(), value);
  const auto magnitude = hn::And(bits, hn::Set(Bits(), 0x7fffffffu));
  const auto sign = hn::ShiftRight<32 - 8 * sizeof(typename Format::Bits)>(
      hn::And(bits, hn::Set(Bits(), 0x80000000u)));
  const auto normal = hn::Sub(roundingShift<kShift>(magnitude), hn::Set(Bits(), kRebias));
  const auto rounder = hn::Set(Lanes(), kRounder);
  const auto subnormal =
      hn::Sub(hn::BitCast(Bits(), hn::Add(hn::BitCast(Lanes(), magnitude), rounder)),
              hn::BitCast(Bits(), rounder));
  auto result = hn::IfThenElse(above(magnitude, kLeastNormal - 1), normal, subnormal);
  auto isNaNLane = above(magnitude, kFloat32Infinity);
  if constexpr (Format::kKind == FloatKind::Ieee) {
    result = hn::Min(result, hn::Set(Bits(), Format::kInfinity));
  } else {
    isNaNLane = hn::Or(isNaNLane, above(result, Format::kMaxOrdered));
  }
  auto withSign = hn::Or(result, sign);
  if constexpr (Format::kKind == FloatKind::Fnuz) {  // no negative zero
    withSign = hn::IfThenElse(hn::Eq(result, hn::Zero(Bits())), result, withSign);
  }
  withSign = hn::IfThenElse(isNaNLane, hn::Set(Bits(), std::uint32_t{Format::kNaN}), withSign);
  // Saturates, but fits.
  return hn::DemoteTo(Small<Format>(), hn::BitCast(SignedBits(), withSign));
}

// The upper half of each lane is the bfloat16; what the lower half holds does not matter.
HWY_INLINE Words roundToBFloat16(Floats value) {
  const auto bits = hn::BitCast(Bits(), value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(Bits(), 1u));
  // A carry runs into the exponent, up to infinity; only of a NaN could it reach the sign.
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(Bits(), 0x7fffu)));
  return hn::IfThenElse(hn::RebindMask(Bits(), hn::Eq(value, value)), rounded,
                        hn::Set(Bits(), std::uint32_t{BFloat16Format::kNaN} << 16));
}

template <>
HWY_INLINE hn::Vec<Small<BFloat16Format>> narrow<BFloat16Format>(Floats value) {
  const auto bits = hn::ShiftRight<16>(roundToBFloat16(value));
  return hn::DemoteTo(Small<BFloat16Format>(), hn::BitCast(SignedBits(), bits));
}

// AVX2 and its successors convert float16 themselves, with the same results.
#if HWY_TARGET <= HWY_AVX2
using Half = hn::Rebind<hwy::float16_t, Lanes>;

template <>
HWY_INLINE Floats widen<Float16Format>(hn::Vec<Small<Float16Format>> small) {
  return hn::PromoteTo(Lanes(), hn::BitCast(Half(), small));
}

template <>
HWY_INLINE hn::Vec<Small<Float16Format>> narrow<Float16Format>(Floats value) {
  const auto bits = hn::BitCast(Small<Float16Format>(), hn::DemoteTo(Half(), value));
  // Canonical NaNs keep their sign in hardware; there is but a positive one here.
  const Small<Float16Format> d;
  const auto magnitude = hn::And(bits, hn::Set(d, std::uint16_t{Float16Format::kMagnitude}));
  return hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, std::uint16_t{Float16Format::kInfinity})),
                        hn::Set(d, std::uint16_t{Float16Format::kNaN}), bits);
}
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace byway
HWY_AFTER_NAMESPACE();

#endif
