// SPDX-License-Identifier: BSD-3-Clause
// The vector conversions against the scalar ones that convert_test.cc checks, on every target:
// all patterns, and for narrowing the float32 neighbours of every value and every tie. A reduction
// of one input converts and does nothing else.
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include "byway/kernels/convert.h"
#include "byway/kernels/reduce.h"

namespace byway {
namespace {

template <class Format>
std::vector<typename Format::Bits> allPatterns() {
  std::vector<typename Format::Bits> patterns(std::size_t{1}
                                              << (8 * sizeof(typename Format::Bits)));
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    patterns[i] = static_cast<typename Format::Bits>(i);
  }
  return patterns;
}

void convert(DType dtype, Width from, const void* in, Width to, void* out, std::size_t count) {
  const ReduceInput input{in, from};
  reduce({dtype, ReduceOp::Sum, to}, out, {&input, 1}, count);
}

template <class Format>
void expectWidens(DType dtype) {
  const auto patterns = allPatterns<Format>();
  std::vector<float> wide(patterns.size());
  convert(dtype, Width::Element, patterns.data(), Width::Accumulator, wide.data(), wide.size());
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]),
              std::bit_cast<std::uint32_t>(toFloat<Format>(patterns[i])))
        << toString(dtype) << " " << i;
  }
}

template <class Format>
std::vector<float> interestingFloats() {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> floats;
  for (const auto bits : allPatterns<Format>()) {
    const float value = toFloat<Format>(bits);
    const float next = toFloat<Format>(static_cast<typename Format::Bits>(bits + 1));
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
void expectNarrows(DType dtype) {
  const std::vector<float> floats = interestingFloats<Format>();
  std::vector<typename Format::Bits> bits(floats.size());
  convert(dtype, Width::Accumulator, floats.data(), Width::Element, bits.data(), bits.size());
  for (std::size_t i = 0; i < floats.size(); ++i) {
    ASSERT_EQ(bits[i], fromFloat<Format>(floats[i])) << toString(dtype) << " " << floats[i];
  }
}

template <class Format>
void expectConverts(DType dtype) {
  expectWidens<Format>(dtype);
  expectNarrows<Format>(dtype);
}

template <class F>
void onEveryTarget(F f) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    f();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(SimdConvert, AgreesWithScalarOnEveryTarget) {
  onEveryTarget([] {
    expectConverts<Float16Format>(DType::Float16);
    expectConverts<BFloat16Format>(DType::BFloat16);
    expectConverts<E4M3FNFormat>(DType::Float8E4M3FN);
    expectConverts<E5M2Format>(DType::Float8E5M2);
    expectConverts<E4M3FNUZFormat>(DType::Float8E4M3FNUZ);
    expectConverts<E5M2FNUZFormat>(DType::Float8E5M2FNUZ);
  });
}

// bfloat16 in and out has a loop of its own: every pattern against eight others.
TEST(SimdConvert, PairsOfBFloat16RoundAsTheOthers) {
  const auto patterns = allPatterns<BFloat16Format>();
  onEveryTarget([&] {
    for (const std::uint32_t stride : {1u, 3u, 129u, 0x4001u, 0x7f81u, 0x8001u, 0x8081u, 0xffffu}) {
      std::vector<std::uint16_t> others(patterns.size()), sums(patterns.size()),
          expected(patterns.size());
      for (std::size_t i = 0; i < others.size(); ++i) {
        others[i] = static_cast<std::uint16_t>(i * stride + stride / 2);
      }
      const ReduceInput inputs[] = {{patterns.data()}, {others.data()}};
      const ReduceSpec spec{DType::BFloat16, ReduceOp::Sum};
      reduce(spec, sums.data(), inputs, sums.size());
      reduceScalar(spec, expected.data(), inputs, sums.size());
      ASSERT_EQ(sums, expected) << stride;
    }
  });
}

}  // namespace
}  // namespace byway
