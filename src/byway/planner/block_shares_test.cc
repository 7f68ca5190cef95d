// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/block_shares.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "byway/base/error.h"

namespace byway {
namespace {

using ::testing::ElementsAre;

Slice slice(int block, std::uint64_t units, bool direct) {
  Slice s;
  s.block = block;
  s.units = units;
  s.direct = direct;
  return s;
}

TEST(BlockShares, SumToTheWholeAndDifferByOneWhereUnitsAreEqual) {
  Shape shape = makeShape(Collective::AllReduce, 2, {{{0, 1}, 0}});
  const std::vector<Slice> slices(7, slice(0, 123456789, true));
  shareBlocks(shape, slices);
  const auto& shares = shape.blocks[0].shares;
  EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), std::uint64_t{0}), kWhole);
  for (const auto share : shares) EXPECT_LE(share - kWhole / 7, 1U);
}

TEST(BlockShares, NumberDirectSlicesFirstAndDropEmptyOnes) {
  Shape shape = makeShape(Collective::AllGather, 3, {{{0, 1}, 0}});
  EXPECT_THAT(shareBlocks(shape, {slice(0, 2, false), slice(1, 1, true), slice(0, 0, true),
                                  slice(0, 1, true), slice(0, 1, false)}),
              ElementsAre(1, 0, kDropped, 0, 2));
  EXPECT_THAT(shape.blocks[0].shares, ElementsAre(kWhole / 4, kWhole / 2, kWhole / 4));
  EXPECT_EQ(shape.blocks[0].directShares, 1);
  EXPECT_THAT(shape.blocks[1].shares, ElementsAre(kWhole));
}

TEST(BlockShares, KeepVeryUnequalSizesExact) {
  Shape shape = makeShape(Collective::AllReduce, 2, {{{0, 1}, 0}});
  const std::uint64_t large = std::uint64_t{1} << 60;
  shareBlocks(shape, {slice(0, large, true), slice(0, 1, true), slice(0, large, true)});
  EXPECT_THAT(shape.blocks[0].shares, ElementsAre(kWhole / 2, 0, kWhole / 2));
}

TEST(BlockShares, RefuseABlockThatIsNot) {
  Shape shape = makeShape(Collective::AllReduce, 2, {{{0, 1}, 0}});
  EXPECT_THROW(shareBlocks(shape, {slice(1, 1, true)}), Error);
}

}  // namespace
}  // namespace byway
