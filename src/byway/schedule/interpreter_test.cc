// SPDX-License-Identifier: BSD-3-Clause
// Every collective against a plain loop: out of place, in place, each rank alone in place.
#include "byway/schedule/interpreter.h"

#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "byway/base/error.h"
#include "byway/schedule/schedule_test_util.h"

namespace byway {
namespace {

using namespace testing_util;  // NOLINT(google-build-using-namespace): the hand-written schedules

// An element type, its accumulator, and a reduction that tells every order of its terms apart.
struct Int32 {
  using Element = std::int32_t;
  using Accumulator = std::int32_t;
  static constexpr std::uint32_t kFactor = 3;
};
// Sums that do not fit an element, though their averages do.
struct Widened {
  using Element = std::uint16_t;
  using Accumulator = std::uint32_t;
  static constexpr std::uint32_t kFactor = 1;
};

template <class T>
std::uint32_t combine(std::uint32_t a, std::uint32_t b) {
  return a * T::kFactor + b;
}

template <class V>
std::uint32_t load(const void* data, std::size_t index) {
  V value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + index * sizeof(V), sizeof(V));
  return static_cast<std::uint32_t>(value);
}

template <class V>
void store(void* data, std::size_t index, std::uint32_t number) {
  const V value = static_cast<V>(number);
  std::memcpy(static_cast<std::byte*>(data) + index * sizeof(V), &value, sizeof(V));
}

template <class T>
void reduceLoop(void* to, Width toWidth, std::span<const InterpreterInput> inputs,
                std::size_t elements, std::uint32_t divisor) {
  using E = typename T::Element;
  using A = typename T::Accumulator;
  for (std::size_t i = 0; i < elements; ++i) {
    std::uint32_t sum = 0;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const std::uint32_t value = inputs[k].width == Width::Element ? load<E>(inputs[k].data, i)
                                                                    : load<A>(inputs[k].data, i);
      sum = k == 0 ? value : combine<T>(sum, value);
    }
    if (toWidth == Width::Accumulator) {
      store<A>(to, i, sum);
    } else {
      store<E>(to, i, std::is_same_v<T, Widened> ? sum / divisor : sum);
    }
  }
}

std::uint32_t contribution(int position, std::size_t block, std::uint64_t index) {
  return 60000 + 977 * static_cast<std::uint32_t>(position) +
         131 * static_cast<std::uint32_t>(block) + static_cast<std::uint32_t>(index % 1009);
}

template <class T>
std::uint32_t expected(const Shape& shape, std::size_t b, std::uint64_t index) {
  using E = typename T::Element;
  const Block& block = shape.blocks[b];
  const auto element = [&](int position) {
    return static_cast<std::uint32_t>(static_cast<E>(contribution(position, b, index)));
  };
  if (!reduces(shape.collective)) return element(block.source);
  const int size = shape.groups[static_cast<std::size_t>(block.group)].size();
  std::vector<std::uint32_t> sums;
  for (int first = 0; first < size; first += 16) {
    bool any = false;
    std::uint32_t sum = 0;
    for (int p = first; p < std::min(size, first + 16); ++p) {
      if (p == block.destination) continue;
      sum = any ? combine<T>(sum, element(p)) : element(p);
      any = true;
    }
    if (any) sums.push_back(sum);
  }
  if (block.destination >= 0) sums.push_back(element(block.destination));
  const std::uint32_t total = std::accumulate(sums.begin() + 1, sums.end(), sums[0], combine<T>);
  const bool divides = std::is_same_v<T, Widened>;
  return static_cast<std::uint32_t>(
      static_cast<E>(divides ? total / static_cast<std::uint32_t>(size) : total));
}

std::uint64_t elementsOf(const std::vector<int>& blocks, std::span<const std::uint64_t> counts) {
  std::uint64_t sum = 0;
  for (const int b : blocks) sum += counts[static_cast<std::size_t>(b)];
  return sum;
}

// Where each block of `blocks` starts, in elements; in place, at the place it has in `home`.
std::uint64_t startOf(int block, const std::vector<int>& home,
                      std::span<const std::uint64_t> counts) {
  std::uint64_t start = 0;
  for (const int b : home) {
    if (b == block) return start;
    start += counts[static_cast<std::size_t>(b)];
  }
  ADD_FAILURE() << "block " << block << " is not there";
  return 0;
}

template <class T>
RankMemory makeMemory(const Shape& shape, int rank, bool inPlace,
                      std::span<const std::uint64_t> counts) {
  using E = typename T::Element;
  const auto in = inputBlocks(shape, rank);
  const auto out = outputBlocks(shape, rank);
  RankMemory memory;
  memory.inPlace = inPlace;
  const bool inputInOutput = inPlace && out.size() >= in.size();
  const bool outputInInput = inPlace && !inputInOutput;
  const auto fill = std::byte{0xa5};
  if (!inputInOutput) memory.input.assign(elementsOf(in, counts) * sizeof(E), fill);
  if (!outputInInput) memory.output.assign(elementsOf(out, counts) * sizeof(E), fill);
  auto& home = inputInOutput ? memory.output : memory.input;
  for (const int b : in) {
    const auto start = startOf(b, inputInOutput ? out : in, counts);
    for (std::uint64_t i = 0; i < counts[static_cast<std::size_t>(b)]; ++i) {
      store<E>(home.data(), start + i,
               contribution(membershipOf(shape, rank).position, static_cast<std::size_t>(b), i));
    }
  }
  return memory;
}

template <class T>
void checkResult(const Shape& shape, int rank, const RankMemory& memory,
                 std::span<const std::uint64_t> counts) {
  using E = typename T::Element;
  const auto in = inputBlocks(shape, rank);
  const auto out = outputBlocks(shape, rank);
  const bool outputInInput = memory.inPlace && out.size() < in.size();
  const auto& home = outputInInput ? memory.input : memory.output;
  int wrong = 0;
  for (const int b : out) {
    const auto start = startOf(b, outputInInput ? in : out, counts);
    for (std::uint64_t i = 0; i < counts[static_cast<std::size_t>(b)] && wrong < 3; ++i) {
      const auto found = load<E>(home.data(), start + i);
      const auto want = expected<T>(shape, static_cast<std::size_t>(b), i);
      const bool right = found == static_cast<std::uint32_t>(static_cast<E>(want));
      EXPECT_TRUE(right) << "rank " << rank << " block " << b << "[" << i << "]: " << found
                         << " instead of " << want;
      wrong += right ? 0 : 1;
    }
  }
}

template <class T>
void runAndCheck(const VerifiedSchedule& verified, std::span<const std::uint64_t> counts,
                 const std::vector<bool>& inPlace) {
  const Shape& shape = verified.schedule().shape;
  std::vector<RankMemory> memory;
  for (int r = 0; r < shape.ranks; ++r) {
    memory.push_back(makeMemory<T>(shape, r, inPlace[static_cast<std::size_t>(r)], counts));
  }
  const std::vector<RankMemory> before = memory;
  interpret(verified, counts, sizeof(typename T::Element), sizeof(typename T::Accumulator),
            reduceLoop<T>, memory);
  for (int r = 0; r < shape.ranks; ++r) {
    const auto rank = static_cast<std::size_t>(r);
    checkResult<T>(shape, r, memory[rank], counts);
    if (!inPlace[rank]) {
      EXPECT_EQ(memory[rank].input, before[rank].input) << "rank " << r;
    }
  }
}

template <class T>
class Interpreter : public testing::Test {};
using Types = testing::Types<Int32, Widened>;
TYPED_TEST_SUITE(Interpreter, Types);

TYPED_TEST(Interpreter, MatchesAPlainLoop) {
  for (const Schedule& s : handWritten()) {
    const auto verified = verify(s);
    const auto ranks = static_cast<std::size_t>(s.shape.ranks);
    for (const std::uint64_t count : {0u, 1u, 7u, 64u, 1000u}) {
      SCOPED_TRACE(s.name + " of " + std::to_string(count));
      const std::vector<std::uint64_t> counts(s.shape.blocks.size(), count);
      runAndCheck<TypeParam>(*verified, counts, std::vector<bool>(ranks, false));
      if (s.shape.collective == Collective::AllToAll) continue;
      runAndCheck<TypeParam>(*verified, counts, std::vector<bool>(ranks, true));
      for (std::size_t alone = 0; alone < std::min<std::size_t>(ranks, 5); ++alone) {
        std::vector<bool> inPlace(ranks, false);
        inPlace[alone] = true;
        runAndCheck<TypeParam>(*verified, counts, inPlace);
      }
    }
  }
}

TYPED_TEST(Interpreter, TakesBlocksOfUnequalCounts) {
  for (const Schedule& s : handWritten()) {
    SCOPED_TRACE(s.name);
    const auto verified = verify(s);
    const auto ranks = static_cast<std::size_t>(s.shape.ranks);
    std::vector<std::uint64_t> counts;
    for (std::size_t b = 0; b < s.shape.blocks.size(); ++b) counts.push_back(b * b * 101 % 333);
    runAndCheck<TypeParam>(*verified, counts, std::vector<bool>(ranks, false));
    if (s.shape.collective == Collective::AllToAll) continue;
    runAndCheck<TypeParam>(*verified, counts, std::vector<bool>(ranks, true));
  }
}

void addNothing(void*, Width, std::span<const InterpreterInput>, std::size_t, std::uint32_t) {}

TEST(InterpreterMemory, MustHaveItsSize) {
  const auto verified = verify(allGather(2));
  const std::vector<std::uint64_t> counts{2, 3};
  const auto run = [&](std::vector<RankMemory> memory) {
    interpret(*verified, counts, 1, 1, addNothing, memory);
  };
  const auto bytes = [](std::size_t n) { return std::vector<std::byte>(n); };
  EXPECT_NO_THROW(run({{bytes(2), bytes(5), false}, {{}, bytes(5), true}}));
  EXPECT_THROW(run({{bytes(2), bytes(5), false}}), Error);
  EXPECT_THROW(run({{bytes(3), bytes(5), false}, {bytes(3), bytes(5), false}}), Error);
  EXPECT_THROW(run({{bytes(2), bytes(4), false}, {bytes(3), bytes(5), false}}), Error);
}

TEST(InterpreterMemory, OfAnAllToAllIsNeverInPlace) {
  const auto verified = verify(allToAll(2));
  std::vector<RankMemory> memory(2);
  memory[1].inPlace = true;
  EXPECT_THROW(interpret(*verified, std::vector<std::uint64_t>(4), 1, 1, addNothing, memory),
               Error);
}

}  // namespace
}  // namespace byway
