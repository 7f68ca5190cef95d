// SPDX-License-Identifier: BSD-3-Clause
// The rules of docs/reductions.md, with expectations worked out by hand.
#include "byway/kernels/reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "byway/kernels/reduce_test_util.h"

namespace byway {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing_util::encoded;
using testing_util::reduced;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class Format>
std::uint32_t of(float value) {
  return fromFloat<Format>(value);
}

template <class T>
using Inputs = std::vector<std::vector<T>>;

// B14.
TEST(ReduceRules, Float16SumRoundsOnceToNearestEven) {
  const float tiny = std::ldexp(1.0f, -24);
  const Inputs<std::uint16_t> inputs = {encoded<Float16Format>({2048, 2050, 65504, 65504, tiny}),
                                        encoded<Float16Format>({1, 1, 15, 16, tiny})};
  // 2049 and 2051 are ties between even neighbours; 65519 is below the tie 65520, which overflows.
  EXPECT_EQ(reduced<std::uint16_t>({.dtype = DType::Float16, .op = ReduceOp::Sum}, inputs),
            encoded<Float16Format>({2048, 2052, 65504, kInfinity, 2 * tiny}));
}

// B15: chained rounding would leave 256.
TEST(ReduceRules, BFloat16PartialsStayInFloat32) {
  for (std::size_t large = 0; large < 8; ++large) {
    Inputs<std::uint16_t> inputs(8, std::vector<std::uint16_t>(33, fromFloat<BFloat16Format>(1)));
    inputs[large].assign(33, fromFloat<BFloat16Format>(256));
    EXPECT_THAT(reduced<std::uint16_t>({.dtype = DType::BFloat16, .op = ReduceOp::Sum}, inputs),
                Each(of<BFloat16Format>(264)));
  }
}

// B19.
TEST(ReduceRules, Float8SumReachesEveryElement) {
  const std::vector<std::uint8_t> ones(64, fromFloat<E4M3FNFormat>(1));
  EXPECT_THAT(
      reduced<std::uint8_t>({.dtype = DType::Float8E4M3FN, .op = ReduceOp::Sum}, {ones, ones}),
      Each(of<E4M3FNFormat>(2)));
}

TEST(ReduceRules, Float8Overflow) {
  const auto sum = [](DType dtype, std::uint8_t a, std::uint8_t b) {
    return reduced<std::uint8_t>({.dtype = dtype, .op = ReduceOp::Sum}, {{a}, {b}});
  };
  EXPECT_THAT(sum(DType::Float8E4M3FN, 0x7e, 0x7e), ElementsAre(0x7f));    // 896 -> NaN
  EXPECT_THAT(sum(DType::Float8E5M2, 0xfb, 0xfb), ElementsAre(0xfc));      // -114688 -> -inf
  EXPECT_THAT(sum(DType::Float8E4M3FNUZ, 0x7f, 0x7f), ElementsAre(0x80));  // 480 -> NaN
  EXPECT_THAT(sum(DType::Float8E5M2FNUZ, 0x81, 0x01), ElementsAre(0x00));  // -x + x = +0
}

TEST(ReduceRules, AverageDividesBeforeRounding) {
  const Inputs<std::uint16_t> halves(8, encoded<Float16Format>({60000}));
  EXPECT_THAT(
      reduced<std::uint16_t>({.dtype = DType::Float16, .op = ReduceOp::Avg, .divisor = 8}, halves),
      ElementsAre(of<Float16Format>(60000)));
  const Inputs<std::int8_t> bytes(4, {100, -100});
  EXPECT_THAT(
      reduced<std::int8_t>({.dtype = DType::Int8, .op = ReduceOp::Avg, .divisor = 4}, bytes),
      ElementsAre(100, -100));
}

// B09: integer averages truncate toward zero.
TEST(ReduceRules, IntegerAverageTruncates) {
  const ReduceSpec two{.dtype = DType::Int32, .op = ReduceOp::Avg, .divisor = 2};
  EXPECT_THAT(reduced<std::int32_t>(two, {{3, -3}, {4, -4}}), ElementsAre(3, -3));
  const ReduceSpec four{.dtype = DType::Int32, .op = ReduceOp::Avg, .divisor = 4};
  EXPECT_THAT(reduced<std::int32_t>(four, Inputs<std::int32_t>(4, {8, 9})), ElementsAre(8, 9));
  const ReduceSpec floats{.dtype = DType::Float32, .op = ReduceOp::Avg, .divisor = 2};
  EXPECT_THAT(reduced<float>(floats, {{1, 1, 1, 1, 1}, {2, 2, 2, 2, 2}}), Each(1.5f));
  const std::uint8_t big = 250;
  const ReduceSpec bytes{.dtype = DType::UInt8, .op = ReduceOp::Avg, .divisor = 3};
  EXPECT_THAT(reduced<std::uint8_t>(bytes, {{big}, {big}, {big}}), ElementsAre(250));
}

// B11.
TEST(ReduceRules, Bitwise) {
  const auto run = [](ReduceOp op, const Inputs<std::int32_t>& inputs) {
    return reduced<std::int32_t>({.dtype = DType::Int32, .op = op}, inputs);
  };
  EXPECT_THAT(run(ReduceOp::BitAnd, {{6}, {3}}), ElementsAre(2));
  EXPECT_THAT(run(ReduceOp::BitOr, {{6}, {3}}), ElementsAre(7));
  EXPECT_THAT(run(ReduceOp::BitXor, {{6}, {3}}), ElementsAre(5));
  EXPECT_THAT(run(ReduceOp::BitAnd, {{6}, {3}, {5}}), ElementsAre(0));
  EXPECT_THAT(run(ReduceOp::BitOr, {{6}, {3}, {5}}), ElementsAre(7));
  EXPECT_THAT(run(ReduceOp::BitXor, {{6}, {3}, {5}}), ElementsAre(0));
}

template <class T>
void expectUnsignedOrder(DType dtype) {
  const T max = std::numeric_limits<T>::max();
  for (const std::size_t size : {2u, 33u}) {
    std::vector<T> a(size, 0), b(size, max);
    a.back() = max;
    b.back() = 0;
    EXPECT_THAT(reduced<T>({.dtype = dtype, .op = ReduceOp::Min}, {a, b}), Each(0));
    EXPECT_THAT(reduced<T>({.dtype = dtype, .op = ReduceOp::Max}, {a, b}), Each(max));
  }
}

// B13.
TEST(ReduceRules, UnsignedComparesUnsigned) {
  expectUnsignedOrder<std::uint8_t>(DType::UInt8);
  expectUnsignedOrder<std::uint16_t>(DType::UInt16);
  expectUnsignedOrder<std::uint32_t>(DType::UInt32);
  expectUnsignedOrder<std::uint64_t>(DType::UInt64);
}

TEST(ReduceRules, IntegersWrap) {
  EXPECT_THAT(reduced<std::int8_t>({.dtype = DType::Int8, .op = ReduceOp::Sum}, {{127}, {1}}),
              ElementsAre(-128));
  EXPECT_THAT(
      reduced<std::uint16_t>({.dtype = DType::UInt16, .op = ReduceOp::Product}, {{65535}, {65535}}),
      ElementsAre(1));
  const std::int64_t max = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(reduced<std::int64_t>({.dtype = DType::Int64, .op = ReduceOp::Product}, {{max}, {2}}),
              ElementsAre(-2));
}

TEST(ReduceRules, BoolIsZeroOrOneWhateverTheByte) {
  const Inputs<std::uint8_t> inputs = {{0, 0, 2, 4}, {0, 8, 0, 3}};
  const auto run = [&](ReduceOp op) {
    return reduced<std::uint8_t>({.dtype = DType::Bool, .op = op}, inputs);
  };
  for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Max, ReduceOp::BitOr}) {
    EXPECT_THAT(run(op), ElementsAre(0, 1, 1, 1)) << toString(op);
  }
  for (const ReduceOp op : {ReduceOp::Product, ReduceOp::Min, ReduceOp::BitAnd}) {
    EXPECT_THAT(run(op), ElementsAre(0, 0, 0, 1)) << toString(op);
  }
  EXPECT_THAT(run(ReduceOp::BitXor), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(reduced<std::uint8_t>({.dtype = DType::Bool, .op = ReduceOp::Sum}, {{255, 0}}),
              ElementsAre(1, 0));
}

// B17.
TEST(ReduceRules, ComplexProductAndSum) {
  using C = std::complex<float>;
  const Inputs<C> inputs = {{C(1, 2)}, {C(3, 4)}};
  EXPECT_THAT(reduced<C>({.dtype = DType::Complex64, .op = ReduceOp::Sum}, inputs),
              ElementsAre(C(4, 6)));
  EXPECT_THAT(reduced<C>({.dtype = DType::Complex64, .op = ReduceOp::Product}, inputs),
              ElementsAre(C(-5, 10)));
  const ReduceSpec average{.dtype = DType::Complex64, .op = ReduceOp::Avg, .divisor = 2};
  EXPECT_THAT(reduced<C>(average, inputs), ElementsAre(C(2, 3)));
  const ReduceSpec turned{
      .dtype = DType::Complex64, .op = ReduceOp::PremulSum, .factor = {0.0, 1.0}};
  EXPECT_THAT(reduced<C>(turned, inputs), ElementsAre(C(-6, 4)));
}

TEST(ReduceRules, PremulSumScalesRawInputsOnly) {
  const ReduceSpec spec{.dtype = DType::Float32, .op = ReduceOp::PremulSum, .factor = 10.0};
  const float raw = 2, partial = 3;
  const ReduceInput inputs[] = {{&partial, Width::Accumulator}, {&raw}};
  float result = 0;
  reduce(spec, &result, inputs, 1);
  EXPECT_EQ(result, 23.0f);
  reduce(spec, &result, std::span(inputs).subspan(1), 1);
  EXPECT_EQ(result, 20.0f);
}

// The product is rounded before it is added: fused, 0.1f * 10 - 1 would not be zero.
TEST(ReduceRules, PremulSumIsNotFused) {
  const ReduceSpec spec{.dtype = DType::Float32, .op = ReduceOp::PremulSum, .factor = 0.1};
  const std::vector<float> raw(33, 10.0f), minusOne(33, -1.0f);
  std::vector<float> result(33, 7.0f);
  const ReduceInput inputs[] = {{minusOne.data(), Width::Accumulator}, {raw.data()}};
  reduce(spec, result.data(), inputs, result.size());
  EXPECT_THAT(result, Each(0.0f));
}

template <class T>
void expectNaNPropagates(DType dtype, std::vector<T> values, T nan) {
  std::vector<std::size_t> order = {0, 1, 2, 3};
  do {
    Inputs<T> inputs;
    for (const std::size_t i : order) inputs.emplace_back(33, values[i]);
    for (const ReduceOp op : {ReduceOp::Min, ReduceOp::Max}) {
      const std::vector<T> result = reduced<T>({.dtype = dtype, .op = op}, inputs);
      ASSERT_EQ(result.size(), 33u);
      for (const T& value : result) {
        ASSERT_EQ(std::memcmp(&value, &nan, sizeof(T)), 0) << toString(dtype) << toString(op);
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

template <class Format>
void expectSmallNaNPropagates(DType dtype) {
  const float nan = std::nanf("");
  expectNaNPropagates<typename Format::Bits>(dtype, encoded<Format>({1, nan, 3, 4}), Format::kNaN);
}

// B12.
TEST(ReduceRules, MinAndMaxPropagateNaNFromAnyPosition) {
  const float nan = std::bit_cast<float>(0xffc12345u);  // its bits are kept
  expectNaNPropagates<float>(DType::Float32, {1, nan, 3, 4}, nan);
  const double wideNaN = std::nan("77");
  expectNaNPropagates<double>(DType::Float64, {1, wideNaN, 3, 4}, wideNaN);
  expectSmallNaNPropagates<Float16Format>(DType::Float16);
  expectSmallNaNPropagates<BFloat16Format>(DType::BFloat16);
  expectSmallNaNPropagates<E4M3FNFormat>(DType::Float8E4M3FN);
  expectSmallNaNPropagates<E5M2Format>(DType::Float8E5M2);
  expectSmallNaNPropagates<E4M3FNUZFormat>(DType::Float8E4M3FNUZ);
  expectSmallNaNPropagates<E5M2FNUZFormat>(DType::Float8E5M2FNUZ);
}

TEST(ReduceRules, MinAndMaxKeepTheEarlierZero) {
  for (const ReduceOp op : {ReduceOp::Min, ReduceOp::Max}) {
    const auto singles =
        reduced<float>({.dtype = DType::Float32, .op = op}, {{0.0f, -0.0f}, {-0.0f, 0.0f}});
    ASSERT_EQ(singles.size(), 2u);
    EXPECT_FALSE(std::signbit(singles[0]));
    EXPECT_TRUE(std::signbit(singles[1]));
    EXPECT_THAT(reduced<std::uint16_t>({.dtype = DType::Float16, .op = op},
                                       {{0x0000, 0x8000}, {0x8000, 0x0000}}),
                ElementsAre(0x0000, 0x8000));
    EXPECT_THAT(
        reduced<std::uint8_t>({.dtype = DType::Float8E5M2, .op = op}, {{0x00, 0x80}, {0x80, 0x00}}),
        ElementsAre(0x00, 0x80));
  }
}

TEST(ReduceRules, ArithmeticStoresOneNaN) {
  const float nan = std::bit_cast<float>(0xff812345u);
  for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Avg, ReduceOp::Product}) {
    const auto result = reduced<float>({.dtype = DType::Float32, .op = op},
                                       {{nan, 1, kInfinity}, {1, nan, std::nanf("3")}});
    ASSERT_EQ(result.size(), 3u);
    for (const float value : result) EXPECT_EQ(std::bit_cast<std::uint32_t>(value), 0x7fc00000u);
  }
  const auto opposite =
      reduced<float>({.dtype = DType::Float32, .op = ReduceOp::Sum}, {{kInfinity}, {-kInfinity}});
  ASSERT_EQ(opposite.size(), 1u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(opposite[0]), 0x7fc00000u);
}

#if defined(__SSE2__)
TEST(ReduceRules, TheThreadsFloatSettingsDoNotMatter) {
  const unsigned saved = _mm_getcsr();
  const unsigned flushAndRoundUp = saved | 0x8040u | 0x4000u;
  const float tiny = std::bit_cast<float>(1u);
  const Inputs<float> inputs = {{tiny, 1.0f}, {tiny, std::ldexp(1.0f, -30)}};
  _mm_setcsr(flushAndRoundUp);
  const auto sum = reduced<float>({.dtype = DType::Float32, .op = ReduceOp::Sum}, inputs);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(saved);
  EXPECT_EQ(after & ~0x3fu, flushAndRoundUp & ~0x3fu);
  ASSERT_EQ(sum.size(), 2u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(sum[0]), 2u);
  EXPECT_EQ(sum[1], 1.0f);
}
#endif

}  // namespace
}  // namespace byway
