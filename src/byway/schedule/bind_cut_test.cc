// SPDX-License-Identifier: BSD-3-Clause
// How a block is cut for an exact count.
#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "byway/schedule/bind.h"
#include "byway/schedule/schedule_test_util.h"

namespace byway {
namespace {

using Counts = std::vector<std::uint64_t>;

// Largest remainder, written down again: every share gets the whole units of its quota, then those
// with the largest fractions one more. Quotas are exact fractions over `whole`.
Counts hamilton(const Counts& shares, std::uint64_t units) {
  using Wide = unsigned __int128;
  const std::uint64_t whole = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
  Counts parts;
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (const auto share : shares) {
    parts.push_back(static_cast<std::uint64_t>(Wide{share} * units / whole));
  }
  const auto fraction = [&](std::size_t i) {  // over whole
    return Wide{shares[i]} * units - Wide{parts[i]} * whole;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return fraction(a) > fraction(b); });
  std::uint64_t left = units - std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
  for (std::size_t i = 0; left > 0; ++i, --left) ++parts[order[i]];
  return parts;
}

// In units of 64 bytes; too few for all shares go to the direct ones. Then the end is cut off.
Counts expectedCut(const Counts& shares, int direct, std::uint64_t count, std::size_t bytes) {
  const std::uint64_t unit = bytes < 64 ? 64 / bytes : 1;
  const std::uint64_t units = (count + unit - 1) / unit;
  Counts cut = shares;
  if (units < shares.size() && direct > 0) cut.resize(static_cast<std::size_t>(direct));
  Counts parts(cut.size(), 0);
  if (std::accumulate(cut.begin(), cut.end(), std::uint64_t{0}) > 0) {
    parts = hamilton(cut, units);
  } else {
    parts[0] = units;
  }
  parts.resize(shares.size(), 0);
  std::uint64_t left = count;
  for (auto& part : parts) {
    part = std::min(part * unit, left);
    left -= part;
  }
  return parts;
}

void checkCut(const Counts& shares, int direct, std::uint64_t count, std::size_t bytes) {
  std::vector<CellRange> cells(shares.size(), {77, 77});
  cutBlock(shares, direct, count, bytes, cells);
  const Counts want = expectedCut(shares, direct, count, bytes);
  const std::uint64_t unit = bytes < 64 ? 64 / bytes : 1;
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    ASSERT_EQ(cells[i].offset, offset) << "count " << count << " bytes " << bytes << " share " << i;
    ASSERT_EQ(cells[i].count, want[i]) << "count " << count << " bytes " << bytes << " share " << i;
    offset += cells[i].count;
    ASSERT_TRUE(offset % unit == 0 || offset == count) << "count " << count << " share " << i;
  }
  ASSERT_EQ(offset, count);
}

Counts randomShares(std::mt19937_64& random, std::size_t parts) {
  Counts borders{0, kWhole};
  std::uniform_int_distribution<std::uint64_t> any(0, kWhole);
  for (std::size_t i = 1; i < parts; ++i) borders.push_back(any(random));
  std::sort(borders.begin(), borders.end());
  Counts shares;
  for (std::size_t i = 0; i < parts; ++i) shares.push_back(borders[i + 1] - borders[i]);
  return shares;
}

std::vector<Counts> someShares() {
  return {{kWhole},
          {kWhole / 2, kWhole / 2},
          {kWhole / 3, kWhole / 3, kWhole - kWhole / 3 * 2},
          {kWhole / 7 * 3, kWhole / 7, kWhole / 7, kWhole - kWhole / 7 * 5},
          {0, kWhole},
          {1, kWhole - 2, 1},
          testing_util::cutEvenly(makeShape(Collective::Reduce, 1, {Group{{0}, 0}}), 24)
              .blocks[0]
              .shares};
}

TEST(CutBlock, GivesTheLargestRemaindersOneMore) {
  for (const Counts& shares : someShares()) {
    const int most = static_cast<int>(shares.size());
    for (const int direct : {0, 1, most / 2, most}) {
      for (const std::size_t bytes : {1u, 2u, 4u, 8u, 16u}) {
        for (std::uint64_t count = 0; count <= 300; ++count) checkCut(shares, direct, count, bytes);
        for (int bit = 9; bit <= 40; ++bit) {
          const std::uint64_t count = std::uint64_t{1} << bit;
          for (const auto c : {count - 1, count, count + 1}) checkCut(shares, direct, c, bytes);
        }
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(CutBlock, CutsAnyShares) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 3000 && !HasFatalFailure(); ++i) {
    const Counts shares = randomShares(random, 1 + random() % 40);
    const auto direct = static_cast<int>(random() % (shares.size() + 1));
    const std::uint64_t count = random() >> (24 + random() % 40);
    checkCut(shares, direct, count, std::size_t{1} << random() % 5);
  }
}

TEST(CutBlock, ByHand) {
  const auto cut = [](const Counts& shares, int direct, std::uint64_t count, std::size_t bytes) {
    std::vector<CellRange> cells(shares.size());
    cutBlock(shares, direct, count, bytes, cells);
    Counts parts;
    for (const CellRange& cell : cells) parts.push_back(cell.count);
    return parts;
  };
  const Counts half{kWhole / 2, kWhole / 2};
  EXPECT_EQ(cut(half, 1, 16, 4), (Counts{16, 0})) << "one unit goes direct";
  EXPECT_EQ(cut(half, 1, 17, 4), (Counts{16, 1})) << "two units, the second not full";
  EXPECT_EQ(cut(half, 1, 48, 4), (Counts{32, 16})) << "a tie goes to the earlier";
  const Counts third{kWhole / 4, kWhole / 4, kWhole / 2};
  EXPECT_EQ(cut(third, 2, 2, 64), (Counts{1, 1, 0}));
  EXPECT_EQ(cut(third, 0, 1, 64), (Counts{0, 0, 1})) << "no share is direct";
  EXPECT_EQ(cut(third, 1, 9, 128), (Counts{2, 2, 5})) << "2.25, 2.25 and 4.5: no tie";
  EXPECT_EQ(cut({0, kWhole / 2, kWhole / 2}, 1, 2, 64), (Counts{2, 0, 0}))
      << "the direct share is of no size, but all there is";
}

}  // namespace
}  // namespace byway
