// SPDX-License-Identifier: BSD-3-Clause
// Sums and products of 16- and 8-bit floats in float32, compiled for every target.
#include "byway/kernels/convert.h"
#include "byway/kernels/fold.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "byway/kernels/small_float_fold.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#include "byway/kernels/fold_loop-inl.h"
#include "byway/kernels/small_float_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace byway {
namespace HWY_NAMESPACE {
namespace {

// What all blocks of float32 vectors do alike.
template <ReduceOp kOp>
class Float32Steps {
 public:
  explicit Float32Steps(const ReduceSpec& spec)
      : factor_(static_cast<float>(spec.factor.real())),
        divisor_(static_cast<float>(spec.divisor)) {}
  HWY_INLINE Floats raw(Floats v) const {
    return kOp == ReduceOp::PremulSum ? hn::Mul(v, hn::Set(Lanes(), factor_)) : v;
  }
  HWY_INLINE Floats step(Floats a, Floats b) const {
    return kOp == ReduceOp::Product ? hn::Mul(a, b) : hn::Add(a, b);
  }
  HWY_INLINE Floats finish(Floats v) const {
    return kOp == ReduceOp::Avg ? hn::Div(v, hn::Set(Lanes(), divisor_)) : v;
  }

 private:
  const float factor_, divisor_;
};

// One float32 vector a block.
template <class Format, ReduceOp kOp>
struct SmallFloatPolicy : Float32Steps<kOp> {
  using Block = Floats;
  static constexpr bool kOneForm = false;
  static constexpr std::size_t kLanesPerElement = 1;
  static constexpr std::size_t kElementBytes = sizeof(typename Format::Bits);
  static constexpr std::size_t kAccumulatorBytes = sizeof(float);
  static constexpr std::size_t kMostBlockLanes = hn::MaxLanes(Lanes());
  static std::size_t blockLanes() { return hn::Lanes(Lanes()); }

  using Float32Steps<kOp>::Float32Steps;
  HWY_INLINE Block loadElement(const std::uint8_t* p) const {
    return this->raw(widen<Format>(loadLanes(Small<Format>(), p)));
  }
  HWY_INLINE Block loadAccumulator(const std::uint8_t* p) const { return loadLanes(Lanes(), p); }
  HWY_INLINE Block combine(Block a, Block b) const { return this->step(a, b); }
  HWY_INLINE void storeElement(Block v, Sink sink) const {
    sink.put(Small<Format>(), narrow<Format>(this->finish(v)));
  }
  HWY_INLINE void storeAccumulator(Block v, Sink sink) const {
    sink.put(Lanes(), canonicalNaN(Lanes(), v));
  }
};

// bfloat16 in and out: a 32-bit lane holds two of them, which go apart and together again by shifts
// and masks within the lane, with no crossing of lanes. There are no accumulators.
template <ReduceOp kOp>
struct BFloat16PairPolicy : Float32Steps<kOp> {
  struct Block {
    Floats low, high;  // elements 0, 2, 4, ... and 1, 3, 5, ...
  };
  static constexpr bool kOneForm = true;
  static constexpr std::size_t kLanesPerElement = 1;
  static constexpr std::size_t kElementBytes = 2, kAccumulatorBytes = 2;
  static constexpr std::size_t kMostBlockLanes = 2 * hn::MaxLanes(Lanes());
  static std::size_t blockLanes() { return 2 * hn::Lanes(Lanes()); }

  using Float32Steps<kOp>::Float32Steps;
  HWY_INLINE Block loadElement(const std::uint8_t* p) const {
    const auto pairs = loadLanes(Bits(), p);
    const auto low = hn::ShiftLeft<16>(pairs);
    const auto high = hn::And(pairs, hn::Set(Bits(), 0xffff0000u));
    return {this->raw(hn::BitCast(Lanes(), low)), this->raw(hn::BitCast(Lanes(), high))};
  }
  HWY_INLINE Block combine(Block a, Block b) const {
    return {this->step(a.low, b.low), this->step(a.high, b.high)};
  }
  HWY_INLINE void storeElement(Block v, Sink sink) const {
    const auto low = roundToBFloat16(this->finish(v.low));
    const auto high = roundToBFloat16(this->finish(v.high));
    sink.put(Bits(), hn::Or(hn::ShiftRight<16>(low), hn::And(high, hn::Set(Bits(), 0xffff0000u))));
  }
};

template <ReduceOp kOp>
void foldBFloat16(const ReduceSpec& spec, void* to, std::span<const ReduceInput> inputs,
                  std::size_t count, bool streams) {
  const bool pairs = spec.to == Width::Element &&
                     std::all_of(inputs.begin(), inputs.end(), [](const ReduceInput& input) {
                       return input.width == Width::Element;
                     });
  const Fold fold =
      pairs ? foldWith<BFloat16PairPolicy<kOp>> : foldWith<SmallFloatPolicy<BFloat16Format, kOp>>;
  fold(spec, to, inputs, count, streams);
}

template <ReduceOp kOp>
Fold ofType(DType type) {
  switch (type) {
    case DType::Float16:
      return foldWith<SmallFloatPolicy<Float16Format, kOp>>;
    case DType::BFloat16:
      return foldBFloat16<kOp>;
    case DType::Float8E4M3FN:
      return foldWith<SmallFloatPolicy<E4M3FNFormat, kOp>>;
    case DType::Float8E5M2:
      return foldWith<SmallFloatPolicy<E5M2Format, kOp>>;
    case DType::Float8E4M3FNUZ:
      return foldWith<SmallFloatPolicy<E4M3FNUZFormat, kOp>>;
    case DType::Float8E5M2FNUZ:
      return foldWith<SmallFloatPolicy<E5M2FNUZFormat, kOp>>;
    case DType::Bool:
    case DType::UInt8:
    case DType::UInt16:
    case DType::UInt32:
    case DType::UInt64:
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Int64:
    case DType::Float32:
    case DType::Float64:
    case DType::Complex64:
    case DType::Complex128:
      return nullptr;
  }
  return nullptr;
}

Fold chooseFold(DType type, ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
      return ofType<ReduceOp::Sum>(type);
    case ReduceOp::Avg:
      return ofType<ReduceOp::Avg>(type);
    case ReduceOp::Product:
      return ofType<ReduceOp::Product>(type);
    case ReduceOp::PremulSum:
      return ofType<ReduceOp::PremulSum>(type);
    case ReduceOp::Min:
    case ReduceOp::Max:
    case ReduceOp::BitAnd:
    case ReduceOp::BitOr:
    case ReduceOp::BitXor:
      return nullptr;
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

Fold smallFloatFold(DType dtype, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(chooseFold)(dtype, op);
}

}  // namespace byway
#endif  // HWY_ONCE
