// SPDX-License-Identifier: BSD-3-Clause
// Every dtype, op, number of inputs, size and width against the oracle, bit for bit, on every
// Highway target that this CPU has. BYWAY_TEST_SEED replays a run.
#include <cstdio>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include "byway/kernels/reduce_test_util.h"

namespace byway {
namespace {

using testing_util::Bytes;
using testing_util::forEachPair;

constexpr std::size_t kSizes[] = {0, 1, 7, 33, 300, 1025};
constexpr std::size_t kCounts[] = {1, 2, 3, 8};
constexpr std::uint32_t kDivisor = 3;
constexpr std::complex<double> kFactor{-0.7, 1.3};

std::uint64_t seed() {
  static const std::uint64_t value = [] {
    const char* text = std::getenv("BYWAY_TEST_SEED");
    const std::uint64_t chosen =
        text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device()();
    std::printf("BYWAY_TEST_SEED=%llu\n", static_cast<unsigned long long>(chosen));
    return chosen;
  }();
  return value;
}

std::uint64_t mixed(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

template <class T>
void put(Bytes& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

// A moderate number in [-8, 8), so that sums and products of eight stay finite more often than not.
void putNumber(Bytes& bytes, std::size_t offset, DType dtype, float value) {
  switch (dtype) {
    case DType::Float16:
      return put(bytes, offset, fromFloat<Float16Format>(value));
    case DType::BFloat16:
      return put(bytes, offset, fromFloat<BFloat16Format>(value));
    case DType::Float8E4M3FN:
      return put(bytes, offset, fromFloat<E4M3FNFormat>(value));
    case DType::Float8E5M2:
      return put(bytes, offset, fromFloat<E5M2Format>(value));
    case DType::Float8E4M3FNUZ:
      return put(bytes, offset, fromFloat<E4M3FNUZFormat>(value));
    case DType::Float8E5M2FNUZ:
      return put(bytes, offset, fromFloat<E5M2FNUZFormat>(value));
    case DType::Float32:
    case DType::Complex64:
      return put(bytes, offset, value);
    case DType::Float64:
    case DType::Complex128:
      return put(bytes, offset, value * 1.00000001);
    case DType::Bool:
    case DType::UInt8:
    case DType::UInt16:
    case DType::UInt32:
    case DType::UInt64:
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Int64:
      return;
  }
}

// Random bits, for floats mostly overwritten by moderate numbers; depends on input and index.
Bytes makeData(DType dtype, std::size_t count, std::uint64_t input) {
  const std::size_t size = sizeOf(dtype);
  const std::size_t parts = dtype == DType::Complex64 || dtype == DType::Complex128 ? 2 : 1;
  Bytes bytes(count * size);
  for (std::size_t part = 0; part < count * parts; ++part) {
    const std::size_t offset = part * (size / parts);
    const std::uint64_t random = mixed(seed() ^ mixed(input * 1000003 + part));
    std::memcpy(bytes.data() + offset, &random, size / parts);
    const std::uint64_t second = mixed(random);
    if (second % 8 == 0) continue;
    if (dtype == DType::Bool && second % 2 == 0) bytes[offset] = 0;
    const auto number = static_cast<float>(static_cast<std::int64_t>(second >> 40) - (1 << 23));
    putNumber(bytes, offset, dtype, number / (1 << 20));
  }
  return bytes;
}

struct Case {
  ReduceSpec spec;
  std::vector<Width> widths;
  std::vector<Bytes> data;
  std::size_t count;

  DType typeOf(Width width) const {
    return width == Width::Element ? spec.dtype : accumulatorOf(spec.dtype, spec.op);
  }
  std::vector<ReduceInput> views() const {
    std::vector<ReduceInput> result;
    for (std::size_t j = 0; j < data.size(); ++j) result.push_back({data[j].data(), widths[j]});
    return result;
  }
  std::size_t resultBytes() const { return count * sizeOf(typeOf(spec.to)); }
  Bytes expected() const {
    Bytes result(resultBytes());
    reduceScalar(spec, result.data(), views(), count);
    return result;
  }
  std::string name() const {
    return std::string(toString(spec.dtype)) + " " + toString(spec.op) + " inputs " +
           std::to_string(data.size()) + " size " + std::to_string(count) + " to " +
           (spec.to == Width::Element ? "element" : "accumulator");
  }
};

// `mask` bit j makes input j an accumulator.
Case makeCase(DType dtype, ReduceOp op, std::size_t inputs, std::size_t count, unsigned mask,
              Width to) {
  Case result{{dtype, op, to, kDivisor, kFactor}, {}, {}, count};
  for (std::size_t j = 0; j < inputs; ++j) {
    result.widths.push_back((mask >> j & 1) != 0 ? Width::Accumulator : Width::Element);
    result.data.push_back(makeData(result.typeOf(result.widths[j]), count, j));
  }
  return result;
}

void expectMatchesOracle(const Case& c) {
  Bytes result(c.resultBytes() + 8, 0xa5);  // the tail stays untouched
  reduce(c.spec, result.data(), c.views(), c.count);
  Bytes expected = c.expected();
  expected.resize(expected.size() + 8, 0xa5);
  ASSERT_EQ(result, expected) << c.name();
}

template <class F>
void forEachCase(F f) {
  forEachPair([&](DType dtype, ReduceOp op) {
    for (const std::size_t inputs : kCounts) {
      for (const std::size_t size : kSizes) {
        const auto mask = static_cast<unsigned>(mixed(seed() + size + inputs));
        f(makeCase(dtype, op, inputs, size, 0, Width::Element));
        f(makeCase(dtype, op, inputs, size, mask, Width::Accumulator));
        f(makeCase(dtype, op, inputs, size, mask >> 8, Width::Element));
      }
    }
  });
}

void restrictTargets(std::int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

class ReduceSweep : public testing::Test {
 protected:
  void SetUp() override { seed(); }
  void TearDown() override { restrictTargets(0); }
};

TEST_F(ReduceSweep, MatchesOracleOnEveryTarget) {
  int targetsRun = 0;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    restrictTargets(target);
    std::printf("target %s\n", hwy::TargetName(target));
    ++targetsRun;
    forEachCase([](const Case& c) {
      if (!HasFatalFailure()) expectMatchesOracle(c);
    });
    ASSERT_FALSE(HasFatalFailure()) << hwy::TargetName(target);
  }
  EXPECT_GE(targetsRun, 1);
}

TEST_F(ReduceSweep, SeveralTiles) {
  forEachPair([](DType dtype, ReduceOp op) {
    if (!HasFatalFailure()) expectMatchesOracle(makeCase(dtype, op, 3, 9001, 0, Width::Element));
  });
}

// Partial results on the way must not change the bits.
TEST_F(ReduceSweep, SplittingAFoldGivesTheSameBits) {
  forEachPair([](DType dtype, ReduceOp op) {
    for (const std::size_t split : {1u, 2u, 3u}) {
      const Case whole = makeCase(dtype, op, 4, 300, 0, Width::Element);
      const std::vector<ReduceInput> views = whole.views();
      ReduceSpec toPartial = whole.spec;
      toPartial.to = Width::Accumulator;
      Bytes partial(300 * sizeOf(accumulatorOf(dtype, op)));
      reduce(toPartial, partial.data(), std::span(views).first(split), 300);
      std::vector<ReduceInput> rest = {{partial.data(), Width::Accumulator}};
      rest.insert(rest.end(), views.begin() + static_cast<std::ptrdiff_t>(split), views.end());
      Bytes result(whole.resultBytes());
      reduce(whole.spec, result.data(), rest, 300);
      ASSERT_EQ(result, whole.expected()) << whole.name() << " split at " << split;
    }
  });
}

TEST_F(ReduceSweep, ResultMayBeAnyInputsBuffer) {
  forEachPair([](DType dtype, ReduceOp op) {
    for (const Width to : {Width::Element, Width::Accumulator}) {
      const unsigned mask = to == Width::Element ? 0 : 7;
      for (std::size_t target = 0; target < 3; ++target) {
        Case c = makeCase(dtype, op, 3, 5000, mask, to);
        const Bytes expected = c.expected();
        reduce(c.spec, c.data[target].data(), c.views(), c.count);
        ASSERT_EQ(c.data[target], expected) << c.name() << " in input " << target;
      }
      Case once = makeCase(dtype, op, 1, 300, mask, to);
      const Bytes expected = once.expected();
      reduce(once.spec, once.data[0].data(), once.views(), once.count);
      ASSERT_EQ(once.data[0], expected) << once.name() << " in place";
      Case twice = makeCase(dtype, op, 1, 300, mask, to);
      twice.data.resize(1);
      std::vector<ReduceInput> same(2, twice.views()[0]);
      Bytes doubled(twice.resultBytes());
      reduceScalar(twice.spec, doubled.data(), same, twice.count);
      reduce(twice.spec, twice.data[0].data(), same, twice.count);
      ASSERT_EQ(twice.data[0], doubled) << twice.name() << " added to itself in place";
    }
  });
}

TEST_F(ReduceSweep, AddressesMayBeUnaligned) {
  forEachPair([](DType dtype, ReduceOp op) {
    for (const Width to : {Width::Element, Width::Accumulator}) {
      const Case c = makeCase(dtype, op, 3, 2100, to == Width::Element ? 2 : 5, to);
      std::vector<Bytes> shifted;
      std::vector<ReduceInput> views;
      for (std::size_t j = 0; j < 3; ++j) {
        shifted.emplace_back(j + 1, 0);
        shifted[j].insert(shifted[j].end(), c.data[j].begin(), c.data[j].end());
        views.push_back({shifted[j].data() + j + 1, c.widths[j]});
      }
      Bytes result(c.resultBytes() + 4, 0xa5);
      reduce(c.spec, result.data() + 3, views, c.count);
      EXPECT_EQ(result.front(), 0xa5);
      EXPECT_EQ(result.back(), 0xa5);
      ASSERT_EQ(Bytes(result.begin() + 3, result.end() - 1), c.expected()) << c.name();
    }
  });
}

}  // namespace
}  // namespace byway
