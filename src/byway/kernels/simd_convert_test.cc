// SPDX-License-Identifier: BSD-3-Clause
// The vector conversions against the scalar ones that convert_test.cc checks, on every target:
// all 2^16 patterns, and for narrowing the float32 neighbours of every value and every tie.
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include "byway/kernels/convert.h"
#include "byway/kernels/tile_kernels.h"

namespace byway {
namespace {

std::vector<std::uint16_t> allPatterns() {
  std::vector<std::uint16_t> patterns(1u << 16);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::uint16_t>(i);
  return patterns;
}

template <class Format>
void expectWidens(Convert widen) {
  const std::vector<std::uint16_t> patterns = allPatterns();
  std::vector<float> wide(patterns.size());
  widen(wide.data(), patterns.data(), patterns.size());
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    if (isNaN<Format>(patterns[i])) {
      ASSERT_TRUE(std::isnan(wide[i])) << i;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]),
                std::bit_cast<std::uint32_t>(toFloat<Format>(patterns[i])))
          << i;
    }
  }
}

template <class Format>
std::vector<float> interestingFloats() {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> floats;
  for (const std::uint16_t bits : allPatterns()) {
    const float value = toFloat<Format>(bits);
    const float next = toFloat<Format>(static_cast<std::uint16_t>(bits + 1));
    for (const float centre : {value, value / 2 + next / 2}) {
      for (const float x :
           {centre, std::nextafter(centre, infinity), std::nextafter(centre, -infinity)}) {
        floats.push_back(x);
      }
    }
  }
  for (std::uint32_t i = 0; i < 1u << 20; ++i) {  // every exponent; odd stride over the mantissas
    floats.push_back(std::bit_cast<float>(i * 4093u));
  }
  return floats;
}

template <class Format>
void expectNarrows(Convert narrow) {
  const std::vector<float> floats = interestingFloats<Format>();
  std::vector<std::uint16_t> bits(floats.size());
  narrow(bits.data(), floats.data(), floats.size());
  for (std::size_t i = 0; i < floats.size(); ++i) {
    ASSERT_EQ(bits[i], fromFloat<Format>(floats[i])) << floats[i];
  }
}

TEST(SimdConvert, AgreesWithScalarOnEveryTarget) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    expectWidens<Float16Format>(simdWiden(DType::Float16));
    expectWidens<BFloat16Format>(simdWiden(DType::BFloat16));
    expectNarrows<Float16Format>(simdNarrow(DType::Float16));
    expectNarrows<BFloat16Format>(simdNarrow(DType::BFloat16));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace
}  // namespace byway
