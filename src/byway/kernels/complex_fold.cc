// SPDX-License-Identifier: BSD-3-Clause
// Products and PremulSum of complex numbers, compiled for every target. Real and imaginary parts
// are neighbouring lanes.
#include "byway/kernels/fold.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "byway/kernels/complex_fold.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#include "byway/kernels/fold_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace byway {
namespace HWY_NAMESPACE {
namespace {

// The textbook formula, as PyTorch has it: no recovery of infinities, each step rounded.
#if HWY_TARGET == HWY_SCALAR  // vectors of one lane, so a number is two of them

template <class T, ReduceOp kOp>
class ComplexPolicy {
 public:
  using D = hn::ScalableTag<T>;
  struct Block {
    hn::Vec<D> real, imag;
  };
  static constexpr bool kOneForm = kOp == ReduceOp::Product;
  static constexpr std::size_t kLanesPerElement = 1, kMostBlockLanes = 1;
  static constexpr std::size_t kElementBytes = 2 * sizeof(T), kAccumulatorBytes = 2 * sizeof(T);
  static std::size_t blockLanes() { return 1; }

  explicit ComplexPolicy(const ReduceSpec& spec)
      : factor_{hn::Set(D(), static_cast<T>(spec.factor.real())),
                hn::Set(D(), static_cast<T>(spec.factor.imag()))} {}

  Block loadAccumulator(const std::uint8_t* p) const {
    return {loadLanes(D(), p), loadLanes(D(), p + sizeof(T))};
  }
  Block loadElement(const std::uint8_t* p) const {
    const Block v = loadAccumulator(p);
    return kOp == ReduceOp::PremulSum ? multiply(v, factor_) : v;
  }
  Block combine(Block a, Block b) const {
    if (kOp == ReduceOp::Product) return multiply(a, b);
    return {hn::Add(a.real, b.real), hn::Add(a.imag, b.imag)};
  }
  void storeAccumulator(Block v, Sink sink) const {
    sink.put(D(), canonicalNaN(D(), v.real));
    Sink{sink.to + sizeof(T), sink.streams}.put(D(), canonicalNaN(D(), v.imag));
  }
  void storeElement(Block v, Sink sink) const { storeAccumulator(v, sink); }

 private:
  static Block multiply(Block a, Block b) {
    return {hn::Sub(hn::Mul(a.real, b.real), hn::Mul(a.imag, b.imag)),
            hn::Add(hn::Mul(a.real, b.imag), hn::Mul(a.imag, b.real))};
  }
  const Block factor_;
};

#else

template <class D>
HWY_INLINE hn::Vec<D> multiplyComplex(D d, hn::Vec<D> a, hn::Vec<D> b) {
  const auto byReal = hn::Mul(hn::DupEven(a), b);                  // ar br, ar bi
  const auto byImag = hn::Mul(hn::DupOdd(a), hn::Reverse2(d, b));  // ai bi, ai br
  return hn::OddEven(hn::Add(byReal, byImag), hn::Sub(byReal, byImag));
}

template <class T, ReduceOp kOp>
class ComplexPolicy : public OwnWidthPolicy<T, 2, kOp == ReduceOp::Product> {
 public:
  using typename OwnWidthPolicy<T, 2, kOp == ReduceOp::Product>::D;
  using typename OwnWidthPolicy<T, 2, kOp == ReduceOp::Product>::Block;

  explicit ComplexPolicy(const ReduceSpec& spec)
      : real_(static_cast<T>(spec.factor.real())), imag_(static_cast<T>(spec.factor.imag())) {}

  HWY_INLINE Block loadElement(const std::uint8_t* p) const {
    const Block v = loadLanes(D(), p);
    if (kOp != ReduceOp::PremulSum) return v;
    return multiplyComplex(D(), v, hn::OddEven(hn::Set(D(), imag_), hn::Set(D(), real_)));
  }
  HWY_INLINE Block combine(Block a, Block b) const {
    return kOp == ReduceOp::Product ? multiplyComplex(D(), a, b) : hn::Add(a, b);
  }
  HWY_INLINE void storeAccumulator(Block v, Sink sink) const {
    sink.put(D(), canonicalNaN(D(), v));
  }
  HWY_INLINE void storeElement(Block v, Sink sink) const { storeAccumulator(v, sink); }

 private:
  const T real_, imag_;
};

#endif

template <ReduceOp kOp>
Fold ofType(DType type) {
  if (type == DType::Complex64) return foldWith<ComplexPolicy<float, kOp>>;
  if (type == DType::Complex128) return foldWith<ComplexPolicy<double, kOp>>;
  return nullptr;
}

Fold chooseFold(DType type, ReduceOp op) {
  if (op == ReduceOp::Product) return ofType<ReduceOp::Product>(type);
  if (op == ReduceOp::PremulSum) return ofType<ReduceOp::PremulSum>(type);
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

Fold complexFold(DType dtype, ReduceOp op) { return HWY_DYNAMIC_DISPATCH(chooseFold)(dtype, op); }

}  // namespace byway
#endif  // HWY_ONCE
