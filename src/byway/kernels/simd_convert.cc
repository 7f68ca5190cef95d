// SPDX-License-Identifier: BSD-3-Clause
// Vector forms of the 16-bit conversions, of scaling, dividing and NaN clean-up, for every target.
// Highway 1.0.3 truncates in its bfloat16 conversions, so rounding is written out on integers.
#include "byway/kernels/convert.h"
#include "byway/kernels/tile_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "byway/kernels/simd_convert.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#include "byway/kernels/simd_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace byway {
namespace HWY_NAMESPACE {
namespace {

using Lanes32 = hn::ScalableTag<std::uint32_t>;
using Signed32 = hn::RebindToSigned<Lanes32>;
using Float32Lanes = hn::RebindToFloat<Lanes32>;
using Lanes16 = hn::Rebind<std::uint16_t, Lanes32>;

struct WidenBFloat16 {
  template <class V>
  auto operator()(V half) const {
    return hn::ShiftLeft<16>(hn::PromoteTo(Lanes32(), half));
  }
};

struct WidenFloat16 {
  template <class V>
  auto operator()(V half) const {
    const Lanes32 d;
    const Signed32 di;
    const auto bits = hn::PromoteTo(d, half);
    const auto magnitude = hn::And(bits, hn::Set(d, Float16Format::kMagnitude));
    const auto sign = hn::ShiftLeft<16>(hn::Xor(bits, magnitude));
    const auto shifted = hn::ShiftLeft<13>(magnitude);
    const auto normal = hn::Add(shifted, hn::Set(d, std::uint32_t{127 - 15} << 23));
    const auto special = hn::Or(shifted, hn::Set(d, kFloat32Infinity));
    const auto subnormal =
        hn::Mul(hn::ConvertTo(Float32Lanes(), hn::BitCast(di, magnitude)),
                hn::Set(Float32Lanes(), 1.0f / 16777216.0f));  // exact: at most ten bits
    const auto signedMagnitude = hn::BitCast(di, magnitude);
    const auto isSpecial = hn::Gt(signedMagnitude, hn::Set(di, 0x7bff));
    const auto isSubnormal = hn::Lt(signedMagnitude, hn::Set(di, 0x0400));
    const auto large = hn::IfThenElse(hn::RebindMask(d, isSpecial), special, normal);
    return hn::Or(sign,
                  hn::IfThenElse(hn::RebindMask(d, isSubnormal), hn::BitCast(d, subnormal), large));
  }
};

// bits >> kShift, rounded to nearest even.
template <int kShift, class V>
V roundingShiftLanes(V bits) {
  const Lanes32 d;
  const auto odd = hn::And(hn::ShiftRight<kShift>(bits), hn::Set(d, 1u));
  const auto bias = hn::Add(hn::Set(d, (1u << (kShift - 1)) - 1), odd);
  return hn::ShiftRight<kShift>(hn::Add(bits, bias));
}

// Puts the sign back, writes the one NaN and keeps 16 bits.
template <class Format, class V>
auto finishNarrow(V result, V sign, V magnitude) {
  const Lanes32 d;
  const Signed32 di;
  const auto isNaNLane =
      hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, static_cast<std::int32_t>(kFloat32Infinity)));
  const auto signedResult = hn::Or(result, hn::ShiftRight<16>(sign));
  const auto chosen = hn::IfThenElse(hn::RebindMask(d, isNaNLane),
                                     hn::Set(d, std::uint32_t{Format::kNaN}), signedResult);
  return hn::DemoteTo(Lanes16(), hn::BitCast(di, chosen));  // saturates, but is at most 0xffff
}

struct NarrowBFloat16 {
  template <class V>
  auto operator()(V bits) const {
    const Lanes32 d;
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7fffffffu));
    return finishNarrow<BFloat16Format>(roundingShiftLanes<16>(magnitude), hn::Xor(bits, magnitude),
                                        magnitude);
  }
};

struct NarrowFloat16 {
  template <class V>
  auto operator()(V bits) const {
    const Lanes32 d;
    const Signed32 di;
    const Float32Lanes df;
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7fffffffu));
    const auto normal = hn::Min(
        hn::Sub(roundingShiftLanes<13>(magnitude), hn::Set(d, std::uint32_t{127 - 15} << 10)),
        hn::Set(d, Float16Format::kInfinity));
    // The last place of 0.5 is the smallest float16, so this addition rounds where float16 does.
    const auto half = hn::Set(df, 0.5f);
    const auto subnormal =
        hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(df, magnitude), half)), hn::BitCast(d, half));
    const auto isSmall =
        hn::Lt(hn::BitCast(di, magnitude), hn::Set(di, std::int32_t{127 - 14} << 23));
    const auto result = hn::IfThenElse(hn::RebindMask(d, isSmall), subnormal, normal);
    return finishNarrow<Float16Format>(result, hn::Xor(bits, magnitude), magnitude);
  }
};

template <class F>
void widen(void* out, const void* in, std::size_t count) {
  mapLanes(Lanes32(), Lanes16(), out, in, count, F());
}

template <class F>
void narrow(void* out, const void* in, std::size_t count) {
  mapLanes(Lanes16(), Lanes32(), out, in, count, F());
}

template <class D>
struct CanonicalNaN {
  template <class V>
  V operator()(V v) const {
    return hn::IfThenElse(hn::Eq(v, v), v, nan());
  }
  static auto nan() {
    using Bits = hwy::MakeUnsigned<hn::TFromD<D>>;
    const hn::RebindToUnsigned<D> d;
    return hn::BitCast(D(),
                       hn::Set(d, static_cast<Bits>(sizeof(Bits) == 4 ? std::uint64_t{kFloat32NaN}
                                                                      : 0x7ff8000000000000u)));
  }
};

template <class D>
struct ScaleLanes {
  hn::TFromD<D> factor;
  template <class V>
  V operator()(V v) const {
    return hn::Mul(v, hn::Set(D(), factor));
  }
};

template <class D>
struct DivideLanes {
  hn::TFromD<D> divisor;
  template <class V>
  V operator()(V v) const {
    return hn::Div(v, hn::Set(D(), divisor));
  }
};

template <class T, std::size_t kLanesPerElement = 1>
void canonicalNaN(void* out, const void* in, std::size_t count) {
  const hn::ScalableTag<T> d;
  mapLanes(d, d, out, in, count * kLanesPerElement, CanonicalNaN<hn::ScalableTag<T>>());
}

template <class T>
void scale(void* out, const void* in, std::complex<double> factor, std::size_t count) {
  const hn::ScalableTag<T> d;
  mapLanes(d, d, out, in, count, ScaleLanes<hn::ScalableTag<T>>{static_cast<T>(factor.real())});
}

template <class T, std::size_t kLanesPerElement = 1>
void divide(void* out, const void* in, std::uint32_t divisor, std::size_t count) {
  const hn::ScalableTag<T> d;
  mapLanes(d, d, out, in, count * kLanesPerElement,
           DivideLanes<hn::ScalableTag<T>>{static_cast<T>(divisor)});
}

Convert chooseWiden(DType dtype) {
  if (dtype == DType::Float16) return widen<WidenFloat16>;
  if (dtype == DType::BFloat16) return widen<WidenBFloat16>;
  return nullptr;
}

Convert chooseNarrow(DType dtype) {
  if (dtype == DType::Float16) return narrow<NarrowFloat16>;
  if (dtype == DType::BFloat16) return narrow<NarrowBFloat16>;
  return nullptr;
}

Convert chooseCanonicalNaN(DType type) {
  if (type == DType::Float32) return canonicalNaN<float>;
  if (type == DType::Float64) return canonicalNaN<double>;
  if (type == DType::Complex64) return canonicalNaN<float, 2>;
  if (type == DType::Complex128) return canonicalNaN<double, 2>;
  return nullptr;
}

Scale chooseScale(DType type) {
  if (type == DType::Float32) return scale<float>;
  if (type == DType::Float64) return scale<double>;
  return nullptr;
}

Divide chooseDivide(DType type) {
  if (type == DType::Float32) return divide<float>;
  if (type == DType::Float64) return divide<double>;
  if (type == DType::Complex64) return divide<float, 2>;
  if (type == DType::Complex128) return divide<double, 2>;
  return nullptr;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace byway
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace byway {
namespace {
HWY_EXPORT(chooseWiden);
HWY_EXPORT(chooseNarrow);
HWY_EXPORT(chooseCanonicalNaN);
HWY_EXPORT(chooseScale);
HWY_EXPORT(chooseDivide);
}  // namespace

Convert simdWiden(DType dtype) { return HWY_DYNAMIC_DISPATCH(chooseWiden)(dtype); }
Convert simdNarrow(DType dtype) { return HWY_DYNAMIC_DISPATCH(chooseNarrow)(dtype); }
Convert simdCanonicalNaN(DType type) { return HWY_DYNAMIC_DISPATCH(chooseCanonicalNaN)(type); }
Scale simdScale(DType type) { return HWY_DYNAMIC_DISPATCH(chooseScale)(type); }
Divide simdDivide(DType type) { return HWY_DYNAMIC_DISPATCH(chooseDivide)(type); }

}  // namespace byway
#endif  // HWY_ONCE
