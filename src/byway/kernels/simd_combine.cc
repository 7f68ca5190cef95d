// SPDX-License-Identifier: BSD-3-Clause
// Vector forms of sum, product, min, max and the bitwise ops, compiled for every target.
#include <type_traits>

#include "byway/kernels/convert.h"
#include "byway/kernels/tile_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "byway/kernels/simd_combine.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#include "byway/kernels/simd_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace byway {
namespace HWY_NAMESPACE {
namespace {

struct AddLanes {
  template <class D, class V>
  V operator()(D, V a, V b) const {
    return hn::Add(a, b);
  }
};

struct MulLanes {
  template <class D, class V>
  V operator()(D, V a, V b) const {
    return hn::Mul(a, b);
  }
};

struct AndLanes {
  template <class D, class V>
  V operator()(D, V a, V b) const {
    return hn::And(a, b);
  }
};

struct OrLanes {
  template <class D, class V>
  V operator()(D, V a, V b) const {
    return hn::Or(a, b);
  }
};

struct XorLanes {
  template <class D, class V>
  V operator()(D, V a, V b) const {
    return hn::Xor(a, b);
  }
};

// Keeps the earlier operand on ties and whenever it is NaN; takes the later one when that is NaN.
template <bool kMax>
struct OrderLanes {
  template <class D, class V>
  V operator()(D, V a, V b) const {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      const auto keep = kMax ? hn::Le(b, a) : hn::Ge(b, a);  // false when either is NaN
      return hn::IfThenElse(hn::And(hn::Eq(a, a), hn::Not(keep)), b, a);
    } else {
      return kMax ? hn::Max(a, b) : hn::Min(a, b);
    }
  }
};

// The same on the bits of a small float: signed lanes, compared as sign and magnitude.
template <class Format, bool kMax>
struct SmallFloatOrderLanes {
  template <class D, class V>
  V operator()(D d, V a, V b) const {
    const V keyA = key(d, a);
    const V keyB = key(d, b);
    const auto better = kMax ? hn::Lt(keyA, keyB) : hn::Lt(keyB, keyA);
    const auto take = hn::AndNot(isNaNLane(d, a), hn::Or(isNaNLane(d, b), better));
    return hn::IfThenElse(take, b, a);
  }

 private:
  template <class D>
  static auto constant(D d, std::uint32_t bits) {
    return hn::Set(d, static_cast<hn::TFromD<D>>(bits));
  }

  // Magnitude, negated under a negative sign; both zeros become 0.
  template <class D, class V>
  static V key(D d, V v) {
    const V negative = hn::VecFromMask(d, hn::Lt(v, hn::Zero(d)));
    const V magnitude = hn::And(v, constant(d, Format::kMagnitude));
    return hn::Sub(hn::Xor(magnitude, negative), negative);
  }

  template <class D, class V>
  static auto isNaNLane(D d, V v) {
    if constexpr (Format::kKind == FloatKind::Fnuz) {
      return hn::Eq(v, constant(d, Format::kNaN));
    } else {
      return hn::Gt(hn::And(v, constant(d, Format::kMagnitude)), constant(d, Format::kMaxOrdered));
    }
  }
};

template <class Lane, class F, std::size_t kLanesPerElement = 1>
void combine(void* out, const void* a, const void* b, std::size_t count) {
  zipLanes(hn::ScalableTag<Lane>(), out, a, b, count * kLanesPerElement, F());
}

// For ops that do not see signs: sums and bitwise.
template <class F>
Combine onIntegers(DType type) {
  switch (sizeOf(type)) {
    case 1:
      return combine<std::uint8_t, F>;
    case 2:
      return combine<std::uint16_t, F>;
    case 4:
      return combine<std::uint32_t, F>;
    case 8:
      return combine<std::uint64_t, F>;
  }
  return nullptr;
}

Combine sum(DType type) {
  if (type == DType::Float32) return combine<float, AddLanes>;
  if (type == DType::Float64) return combine<double, AddLanes>;
  if (type == DType::Complex64) return combine<float, AddLanes, 2>;
  if (type == DType::Complex128) return combine<double, AddLanes, 2>;
  return onIntegers<AddLanes>(type);
}

Combine product(DType type) {
  if (type == DType::Float32) return combine<float, MulLanes>;
  if (type == DType::Float64) return combine<double, MulLanes>;
  return nullptr;
}

template <bool kMax>
Combine order(DType type) {
  switch (type) {
    case DType::UInt8:
      return combine<std::uint8_t, OrderLanes<kMax>>;
    case DType::UInt16:
      return combine<std::uint16_t, OrderLanes<kMax>>;
    case DType::UInt32:
      return combine<std::uint32_t, OrderLanes<kMax>>;
    case DType::UInt64:
      return combine<std::uint64_t, OrderLanes<kMax>>;
    case DType::Int8:
      return combine<std::int8_t, OrderLanes<kMax>>;
    case DType::Int16:
      return combine<std::int16_t, OrderLanes<kMax>>;
    case DType::Int32:
      return combine<std::int32_t, OrderLanes<kMax>>;
    case DType::Int64:
      return combine<std::int64_t, OrderLanes<kMax>>;
    case DType::Float32:
      return combine<float, OrderLanes<kMax>>;
    case DType::Float64:
      return combine<double, OrderLanes<kMax>>;
    case DType::Float16:
      return combine<std::int16_t, SmallFloatOrderLanes<Float16Format, kMax>>;
    case DType::BFloat16:
      return combine<std::int16_t, SmallFloatOrderLanes<BFloat16Format, kMax>>;
    case DType::Float8E4M3FN:
      return combine<std::int8_t, SmallFloatOrderLanes<E4M3FNFormat, kMax>>;
    case DType::Float8E5M2:
      return combine<std::int8_t, SmallFloatOrderLanes<E5M2Format, kMax>>;
    case DType::Float8E4M3FNUZ:
      return combine<std::int8_t, SmallFloatOrderLanes<E4M3FNUZFormat, kMax>>;
    case DType::Float8E5M2FNUZ:
      return combine<std::int8_t, SmallFloatOrderLanes<E5M2FNUZFormat, kMax>>;
    case DType::Bool:
    case DType::Complex64:
    case DType::Complex128:
      return nullptr;
  }
  return nullptr;
}

Combine chooseCombine(DType type, ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Avg:
    case ReduceOp::PremulSum:
      return sum(type);
    case ReduceOp::Product:
      return product(type);
    case ReduceOp::Min:
      return order<false>(type);
    case ReduceOp::Max:
      return order<true>(type);
    case ReduceOp::BitAnd:
      return onIntegers<AndLanes>(type);
    case ReduceOp::BitOr:
      return onIntegers<OrLanes>(type);
    case ReduceOp::BitXor:
      return onIntegers<XorLanes>(type);
  }
  return nullptr;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace byway
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace byway {
namespace {
HWY_EXPORT(chooseCombine);
}  // namespace

Combine simdCombine(DType accumulator, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(chooseCombine)(accumulator, op);
}

}  // namespace byway
#endif  // HWY_ONCE
