// SPDX-License-Identifier: BSD-3-Clause
// Folds whose accumulator is the element's own type, compiled for every target: integers and bool,
// float32 and float64, sums of complex numbers by parts, and the order of small floats on bits.
#include <type_traits>

#include "byway/kernels/convert.h"
#include "byway/kernels/fold.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "byway/kernels/own_width_fold.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#include "byway/kernels/fold_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace byway {
namespace HWY_NAMESPACE {
namespace {

struct AddLanes {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Add(a, b);
  }
};

// Unsigned lanes; Highway has no product of bytes.
struct MulLanes {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    if constexpr (sizeof(hn::TFromD<D>) == 1 && hn::MaxLanes(D()) == 1) {
      return hn::Set(d, static_cast<std::uint8_t>(hn::GetLane(a) * hn::GetLane(b)));
    } else if constexpr (sizeof(hn::TFromD<D>) == 1) {
      const hn::Repartition<std::uint16_t, D> wide;
      const auto a16 = hn::BitCast(wide, a), b16 = hn::BitCast(wide, b);
      const auto low = hn::And(hn::Mul(a16, b16), hn::Set(wide, std::uint16_t{0xff}));
      const auto high = hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16));
      return hn::BitCast(d, hn::Or(low, hn::ShiftLeft<8>(high)));
    } else {
      return hn::Mul(a, b);
    }
  }
};

struct AndLanes {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::And(a, b);
  }
};

struct OrLanes {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Or(a, b);
  }
};

struct XorLanes {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Xor(a, b);
  }
};

// Keeps the earlier operand on ties and whenever it is NaN; takes the later one when that is NaN.
template <bool kMax>
struct OrderLanes {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
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
  HWY_INLINE V operator()(D d, V a, V b) const {
    const V keyA = key(d, a);
    const V keyB = key(d, b);
    const auto better = kMax ? hn::Lt(keyA, keyB) : hn::Lt(keyB, keyA);
    const auto take = hn::AndNot(isNaNLane(d, a), hn::Or(isNaNLane(d, b), better));
    return hn::IfThenElse(take, b, a);
  }

 private:
  template <class D>
  static HWY_INLINE auto constant(D d, std::uint32_t bits) {
    return hn::Set(d, static_cast<hn::TFromD<D>>(bits));
  }

  // Magnitude, negated under a negative sign; both zeros become 0.
  template <class D, class V>
  static HWY_INLINE V key(D d, V v) {
    const V negative = hn::VecFromMask(d, hn::Lt(v, hn::Zero(d)));
    const V magnitude = hn::And(v, constant(d, Format::kMagnitude));
    return hn::Sub(hn::Xor(magnitude, negative), negative);
  }

  template <class D, class V>
  static HWY_INLINE auto isNaNLane(D d, V v) {
    if constexpr (Format::kKind == FloatKind::Fnuz) {
      return hn::Eq(v, constant(d, Format::kNaN));
    } else {
      return hn::Gt(hn::And(v, constant(d, Format::kMagnitude)), constant(d, Format::kMaxOrdered));
    }
  }
};

template <class T, class F>
struct PlainPolicy : OwnWidthPolicy<T, 1, true> {
  using typename OwnWidthPolicy<T, 1, true>::D;
  using typename OwnWidthPolicy<T, 1, true>::Block;
  explicit PlainPolicy(const ReduceSpec& /*spec*/) {}
  HWY_INLINE Block combine(Block a, Block b) const { return F()(D(), a, b); }
};

// Any nonzero byte is true.
template <class F>
struct BoolPolicy : PlainPolicy<std::uint8_t, F> {
  using typename PlainPolicy<std::uint8_t, F>::D;
  using typename PlainPolicy<std::uint8_t, F>::Block;
  using PlainPolicy<std::uint8_t, F>::PlainPolicy;
  HWY_INLINE Block loadElement(const std::uint8_t* p) const {
    return hn::Min(loadLanes(D(), p), hn::Set(D(), std::uint8_t{1}));
  }
};

// Sum, Product, Avg and PremulSum; T is float or double.
template <class T, ReduceOp kOp, std::size_t kLanes = 1>
class ArithmeticPolicy
    : public OwnWidthPolicy<T, kLanes, kOp != ReduceOp::Avg && kOp != ReduceOp::PremulSum> {
  using Base = OwnWidthPolicy<T, kLanes, kOp != ReduceOp::Avg && kOp != ReduceOp::PremulSum>;

 public:
  using typename Base::Block;
  using typename Base::D;

  explicit ArithmeticPolicy(const ReduceSpec& spec)
      : factor_(static_cast<T>(spec.factor.real())), divisor_(static_cast<T>(spec.divisor)) {}

  HWY_INLINE Block loadElement(const std::uint8_t* p) const {
    const Block v = loadLanes(D(), p);
    return kOp == ReduceOp::PremulSum ? hn::Mul(v, hn::Set(D(), factor_)) : v;
  }
  HWY_INLINE Block combine(Block a, Block b) const {
    return kOp == ReduceOp::Product ? hn::Mul(a, b) : hn::Add(a, b);
  }
  HWY_INLINE void storeAccumulator(Block v, Sink sink) const {
    sink.put(D(), canonicalNaN(D(), v));
  }
  HWY_INLINE void storeElement(Block v, Sink sink) const {
    storeAccumulator(kOp == ReduceOp::Avg ? hn::Div(v, hn::Set(D(), divisor_)) : v, sink);
  }

 private:
  const T factor_, divisor_;
};

// For ops that do not see signs: sums, products and bitwise.
template <class F>
Fold onIntegers(DType type) {
  switch (sizeOf(type)) {
    case 1:
      return foldWith<PlainPolicy<std::uint8_t, F>>;
    case 2:
      return foldWith<PlainPolicy<std::uint16_t, F>>;
    case 4:
      return foldWith<PlainPolicy<std::uint32_t, F>>;
    case 8:
      return foldWith<PlainPolicy<std::uint64_t, F>>;
  }
  return nullptr;
}

bool isFloat(DType type) { return type == DType::Float32 || type == DType::Float64; }
bool isComplex(DType type) { return type == DType::Complex64 || type == DType::Complex128; }

template <ReduceOp kOp>
Fold arithmetic(DType type) {
  if (type == DType::Float32) return foldWith<ArithmeticPolicy<float, kOp>>;
  if (type == DType::Float64) return foldWith<ArithmeticPolicy<double, kOp>>;
  constexpr bool kByParts = kOp == ReduceOp::Sum || kOp == ReduceOp::Avg;
  if (kByParts && type == DType::Complex64) return foldWith<ArithmeticPolicy<float, kOp, 2>>;
  if (kByParts && type == DType::Complex128) return foldWith<ArithmeticPolicy<double, kOp, 2>>;
  return nullptr;
}

template <bool kMax>
Fold order(DType type) {
  switch (type) {
    case DType::UInt8:
      return foldWith<PlainPolicy<std::uint8_t, OrderLanes<kMax>>>;
    case DType::UInt16:
      return foldWith<PlainPolicy<std::uint16_t, OrderLanes<kMax>>>;
    case DType::UInt32:
      return foldWith<PlainPolicy<std::uint32_t, OrderLanes<kMax>>>;
    case DType::UInt64:
      return foldWith<PlainPolicy<std::uint64_t, OrderLanes<kMax>>>;
    case DType::Int8:
      return foldWith<PlainPolicy<std::int8_t, OrderLanes<kMax>>>;
    case DType::Int16:
      return foldWith<PlainPolicy<std::int16_t, OrderLanes<kMax>>>;
    case DType::Int32:
      return foldWith<PlainPolicy<std::int32_t, OrderLanes<kMax>>>;
    case DType::Int64:
      return foldWith<PlainPolicy<std::int64_t, OrderLanes<kMax>>>;
    case DType::Float32:
      return foldWith<PlainPolicy<float, OrderLanes<kMax>>>;
    case DType::Float64:
      return foldWith<PlainPolicy<double, OrderLanes<kMax>>>;
    case DType::Float16:
      return foldWith<PlainPolicy<std::int16_t, SmallFloatOrderLanes<Float16Format, kMax>>>;
    case DType::BFloat16:
      return foldWith<PlainPolicy<std::int16_t, SmallFloatOrderLanes<BFloat16Format, kMax>>>;
    case DType::Float8E4M3FN:
      return foldWith<PlainPolicy<std::int8_t, SmallFloatOrderLanes<E4M3FNFormat, kMax>>>;
    case DType::Float8E5M2:
      return foldWith<PlainPolicy<std::int8_t, SmallFloatOrderLanes<E5M2Format, kMax>>>;
    case DType::Float8E4M3FNUZ:
      return foldWith<PlainPolicy<std::int8_t, SmallFloatOrderLanes<E4M3FNUZFormat, kMax>>>;
    case DType::Float8E5M2FNUZ:
      return foldWith<PlainPolicy<std::int8_t, SmallFloatOrderLanes<E5M2FNUZFormat, kMax>>>;
    case DType::Bool:
    case DType::Complex64:
    case DType::Complex128:
      return nullptr;
  }
  return nullptr;
}

// On truth values every op is one of the three bitwise ones.
Fold onBool(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Max:
    case ReduceOp::BitOr:
      return foldWith<BoolPolicy<OrLanes>>;
    case ReduceOp::Product:
    case ReduceOp::Min:
    case ReduceOp::BitAnd:
      return foldWith<BoolPolicy<AndLanes>>;
    case ReduceOp::BitXor:
      return foldWith<BoolPolicy<XorLanes>>;
    case ReduceOp::Avg:
    case ReduceOp::PremulSum:
      return nullptr;
  }
  return nullptr;
}

Fold chooseFold(DType type, ReduceOp op) {
  if (type == DType::Bool) return onBool(op);
  if (accumulatorOf(type, op) != type) return nullptr;
  const bool floats = isFloat(type) || isComplex(type);
  switch (op) {
    case ReduceOp::Sum:
      return floats ? arithmetic<ReduceOp::Sum>(type) : onIntegers<AddLanes>(type);
    case ReduceOp::Avg:
      return arithmetic<ReduceOp::Avg>(type);
    case ReduceOp::PremulSum:
      return arithmetic<ReduceOp::PremulSum>(type);
    case ReduceOp::Product:
      return floats ? arithmetic<ReduceOp::Product>(type) : onIntegers<MulLanes>(type);
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
HWY_EXPORT(chooseFold);
}  // namespace

Fold ownWidthFold(DType dtype, ReduceOp op) { return HWY_DYNAMIC_DISPATCH(chooseFold)(dtype, op); }

}  // namespace byway
#endif  // HWY_ONCE
