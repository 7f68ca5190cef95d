// SPDX-License-Identifier: BSD-3-Clause
// Every bit pattern of every small format, against arithmetic in double with ldexp and nearbyint.
#include "byway/kernels/convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace byway {
namespace {

// A format as its specification states it.
struct Specification {
  int exponentBits, mantissaBits, bias;
  double largest;
  bool hasInfinity, hasNegativeZero;
};

template <class Format>
Specification specificationOf();
template <>
Specification specificationOf<Float16Format>() {
  return {5, 10, 15, 65504.0, true, true};
}
template <>
Specification specificationOf<BFloat16Format>() {
  return {8, 7, 127, std::ldexp(255.0, 120), true, true};
}
template <>
Specification specificationOf<E4M3FNFormat>() {
  return {4, 3, 7, 448.0, false, true};
}
template <>
Specification specificationOf<E5M2Format>() {
  return {5, 2, 15, 57344.0, true, true};
}
template <>
Specification specificationOf<E4M3FNUZFormat>() {
  return {4, 3, 8, 240.0, false, false};
}
template <>
Specification specificationOf<E5M2FNUZFormat>() {
  return {5, 2, 16, 57344.0, false, false};
}

// What the bits mean, read off the specification.
double meaning(const Specification& s, unsigned bits) {
  const int width = 1 + s.exponentBits + s.mantissaBits;
  const bool negative = (bits >> (width - 1)) != 0;
  const unsigned mantissa = bits & ((1u << s.mantissaBits) - 1);
  const unsigned exponent = (bits >> s.mantissaBits) & ((1u << s.exponentBits) - 1);
  if (!s.hasNegativeZero && negative && exponent == 0 && mantissa == 0) return std::nan("");
  const int place = static_cast<int>(exponent == 0 ? 1 : exponent) - s.bias - s.mantissaBits;
  const unsigned significand = exponent == 0 ? mantissa : mantissa + (1u << s.mantissaBits);
  const double magnitude = std::ldexp(significand, place);
  if (magnitude > s.largest) {
    if (!s.hasInfinity || mantissa != 0) return std::nan("");
    return negative ? -std::numeric_limits<double>::infinity()
                    : std::numeric_limits<double>::infinity();
  }
  return negative ? -magnitude : magnitude;
}

// `value` rounded to nearest even in the format, by scaling its last place to one.
double rounded(const Specification& s, double value) {
  if (std::isnan(value)) return value;
  const double overflow = s.hasInfinity ? std::numeric_limits<double>::infinity() : std::nan("");
  double magnitude = std::fabs(value);
  if (!std::isinf(magnitude)) {
    const int exponent = magnitude == 0 ? 1 - s.bias : std::max(std::ilogb(magnitude), 1 - s.bias);
    const int place = exponent - s.mantissaBits;
    magnitude = std::ldexp(std::nearbyint(std::ldexp(magnitude, -place)), place);
  }
  if (magnitude > s.largest) magnitude = overflow;
  if (magnitude == 0 && !s.hasNegativeZero) return 0.0;
  return std::copysign(magnitude, value);
}

bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

template <class Format>
class ConvertTest : public testing::Test {
 protected:
  using Bits = typename Format::Bits;
  static constexpr unsigned kPatterns = 1u << (8 * sizeof(Bits));

  static void expectRounding(float value) {
    const Specification s = specificationOf<Format>();
    const Bits bits = fromFloat<Format>(value);
    ASSERT_TRUE(same(meaning(s, bits), rounded(s, value)))
        << value << " became bits " << unsigned{bits} << " = " << meaning(s, bits);
    if (std::isnan(value)) {
      ASSERT_EQ(bits, Format::kNaN);
    }
  }

  static void expectRoundingAround(float value) {
    const float infinity = std::numeric_limits<float>::infinity();
    expectRounding(value);
    expectRounding(std::nextafter(value, infinity));
    expectRounding(std::nextafter(value, -infinity));
  }
};

struct FormatNames {
  template <class Format>
  static std::string GetName(int) {
    const Specification s = specificationOf<Format>();
    return "e" + std::to_string(s.exponentBits) + "m" + std::to_string(s.mantissaBits) +
           (s.hasNegativeZero ? "" : "fnuz");
  }
};
using Formats = testing::Types<Float16Format, BFloat16Format, E4M3FNFormat, E5M2Format,
                               E4M3FNUZFormat, E5M2FNUZFormat>;
TYPED_TEST_SUITE(ConvertTest, Formats, FormatNames);

TYPED_TEST(ConvertTest, WidensEveryPattern) {
  const Specification s = specificationOf<TypeParam>();
  for (unsigned i = 0; i < this->kPatterns; ++i) {
    const auto bits = static_cast<typename TypeParam::Bits>(i);
    ASSERT_TRUE(same(toFloat<TypeParam>(bits), meaning(s, i))) << i;
    ASSERT_EQ(isNaN<TypeParam>(bits), std::isnan(meaning(s, i))) << i;
  }
}

TYPED_TEST(ConvertTest, RoundTripsEveryPattern) {
  for (unsigned i = 0; i < this->kPatterns; ++i) {
    const auto bits = static_cast<typename TypeParam::Bits>(i);
    const auto expected = isNaN<TypeParam>(bits) ? TypeParam::kNaN : bits;
    ASSERT_EQ(fromFloat<TypeParam>(toFloat<TypeParam>(bits)), expected) << i;
  }
}

// The neighbours of every value and of every midpoint between two values, the ties.
TYPED_TEST(ConvertTest, RoundsToNearestEven) {
  const Specification s = specificationOf<TypeParam>();
  for (unsigned i = 0; i < this->kPatterns; ++i) {
    const double value = meaning(s, i);
    if (std::isnan(value) || std::isinf(value)) continue;
    this->expectRoundingAround(static_cast<float>(value));
    const double next = meaning(s, i + 1);  // same sign: the next larger magnitude
    if (std::isfinite(next)) this->expectRoundingAround(static_cast<float>((value + next) / 2));
    if (this->HasFatalFailure()) return;
  }
  // Half a place above the largest value, where overflow begins.
  const double place = std::ldexp(1.0, std::ilogb(s.largest) - s.mantissaBits);
  this->expectRoundingAround(static_cast<float>(s.largest + place / 2));
  this->expectRoundingAround(static_cast<float>(-s.largest - place / 2));
}

TYPED_TEST(ConvertTest, RoundsRandomAndExtremeFloats) {
  std::mt19937 random(20240607);
  for (int i = 0; i < 200000; ++i) {
    this->expectRounding(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    if (this->HasFatalFailure()) return;
  }
  for (const std::uint32_t bits : {0u, 1u, 0x7fffffu, 0x800000u, 0x7f7fffffu, 0x7f800000u,
                                   0x7f800001u, 0x7fc00000u, 0x7fffffffu}) {
    this->expectRounding(std::bit_cast<float>(bits));
    this->expectRounding(std::bit_cast<float>(bits | 0x80000000u));
  }
}

TEST(ConvertValues, ByHand) {
  EXPECT_EQ(fromFloat<Float16Format>(1.0f), 0x3c00);
  EXPECT_EQ(fromFloat<Float16Format>(65519.0f), 0x7bff);
  EXPECT_EQ(fromFloat<Float16Format>(65520.0f), 0x7c00);
  EXPECT_EQ(fromFloat<Float16Format>(std::ldexp(1.0f, -25)), 0);  // tie to zero
  EXPECT_EQ(fromFloat<BFloat16Format>(263.0f), fromFloat<BFloat16Format>(264.0f));
  EXPECT_EQ(fromFloat<BFloat16Format>(261.0f), fromFloat<BFloat16Format>(260.0f));
  EXPECT_EQ(fromFloat<E4M3FNFormat>(464.0f), 0x7e);  // tie to 448
  EXPECT_EQ(fromFloat<E4M3FNFormat>(465.0f), 0x7f);  // NaN
  EXPECT_EQ(fromFloat<E5M2Format>(61439.0f), 0x7b);
  EXPECT_EQ(fromFloat<E5M2Format>(61440.0f), 0x7c);      // infinity
  EXPECT_EQ(fromFloat<E4M3FNUZFormat>(248.0f), 0x80);    // NaN
  EXPECT_EQ(fromFloat<E5M2FNUZFormat>(-1e-9f), 0);       // no negative zero
  EXPECT_EQ(fromFloat<E5M2FNUZFormat>(61440.0f), 0x80);  // NaN
}

}  // namespace
}  // namespace byway
