// SPDX-License-Identifier: BSD-3-Clause
#include "byway/schedule/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace byway {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Collective kAll[] = {
#define BYWAY_X(id, name, reduces) Collective::id,
    BYWAY_COLLECTIVES(BYWAY_X)
#undef BYWAY_X
};

// Two groups of a communicator of 6; rank 1 only helps. Roots: 4 and 0.
Shape twoGroups(Collective collective) {
  return makeShape(collective, 6, {Group{{5, 2, 4}, 2}, Group{{0, 3}, 0}});
}

std::vector<std::vector<int>> ofEveryRank(const Shape& shape,
                                          std::vector<int> (*blocks)(const Shape&, int)) {
  std::vector<std::vector<int>> result;
  for (int r = 0; r < shape.ranks; ++r) result.push_back(blocks(shape, r));
  return result;
}

std::vector<std::vector<int>> inputs(Collective c) {
  return ofEveryRank(twoGroups(c), inputBlocks);
}
std::vector<std::vector<int>> outputs(Collective c) {
  return ofEveryRank(twoGroups(c), outputBlocks);
}

using Lists = std::vector<std::vector<int>>;

TEST(Shape, EveryBlockIsWhereItsIndexSays) {
  for (const Collective c : kAll) {
    SCOPED_TRACE(toString(c));
    const Shape shape = twoGroups(c);
    int next = 0;
    for (int g = 0; g < 2; ++g) {
      const int size = shape.groups[static_cast<std::size_t>(g)].size();
      EXPECT_EQ(firstBlock(shape, g), next);
      for (int b = 0; b < blocksPerGroup(c, size); ++b, ++next) {
        const Block& block = shape.blocks.at(static_cast<std::size_t>(next));
        EXPECT_EQ(block.group, g);
        EXPECT_EQ(blockInGroup(c, size, block.source, block.destination), b);
        EXPECT_THAT(block.shares, ElementsAre(kWhole));
        EXPECT_EQ(block.directShares, 1);
      }
    }
    EXPECT_EQ(next, static_cast<int>(shape.blocks.size()));
    EXPECT_EQ(firstBlock(shape, 2), next);
  }
}

TEST(Shape, BlocksHaveTheirSourceAndDestination) {
  const auto ends = [](Collective c) {
    std::vector<std::pair<int, int>> result;
    for (const Block& b : twoGroups(c).blocks) result.emplace_back(b.source, b.destination);
    return result;
  };
  using P = std::pair<int, int>;
  EXPECT_THAT(ends(Collective::AllReduce), ElementsAre(P{-1, -1}, P{-1, -1}));
  EXPECT_THAT(ends(Collective::Broadcast), ElementsAre(P{2, -1}, P{0, -1}));
  EXPECT_THAT(ends(Collective::Reduce), ElementsAre(P{-1, 2}, P{-1, 0}));
  EXPECT_THAT(ends(Collective::AllGather),
              ElementsAre(P{0, -1}, P{1, -1}, P{2, -1}, P{0, -1}, P{1, -1}));
  EXPECT_THAT(ends(Collective::Gather), ElementsAre(P{0, 2}, P{1, 2}, P{2, 2}, P{0, 0}, P{1, 0}));
  EXPECT_THAT(ends(Collective::ReduceScatter),
              ElementsAre(P{-1, 0}, P{-1, 1}, P{-1, 2}, P{-1, 0}, P{-1, 1}));
  EXPECT_THAT(ends(Collective::Scatter), ElementsAre(P{2, 0}, P{2, 1}, P{2, 2}, P{0, 0}, P{0, 1}));
  EXPECT_THAT(ends(Collective::AllToAll),
              ElementsAre(P{0, 0}, P{0, 1}, P{0, 2}, P{1, 0}, P{1, 1}, P{1, 2}, P{2, 0}, P{2, 1},
                          P{2, 2}, P{0, 0}, P{0, 1}, P{1, 0}, P{1, 1}));
}

TEST(Shape, MembershipIsThePositionInTheGroup) {
  const Shape shape = twoGroups(Collective::AllReduce);
  const auto of = [&](int rank) {
    const Membership m = membershipOf(shape, rank);
    return std::pair(m.group, m.position);
  };
  EXPECT_EQ(of(5), std::pair(0, 0));
  EXPECT_EQ(of(2), std::pair(0, 1));
  EXPECT_EQ(of(4), std::pair(0, 2));
  EXPECT_EQ(of(0), std::pair(1, 0));
  EXPECT_EQ(of(3), std::pair(1, 1));
  EXPECT_EQ(of(1), std::pair(-1, -1));
}

// Ranks 0 to 5; positions in the groups: 0 -> 0, 2 -> 1, 3 -> 1, 4 -> 2, 5 -> 0.
TEST(Shape, BuffersHoldTheirBlocksInOrder) {
  const Lists whole{{1}, {}, {0}, {1}, {0}, {0}};
  const Lists everything{{3, 4}, {}, {0, 1, 2}, {3, 4}, {0, 1, 2}, {0, 1, 2}};
  const Lists own{{3}, {}, {1}, {4}, {2}, {0}};
  const Lists rootsWhole{{1}, {}, {}, {}, {0}, {}};
  const Lists rootsEverything{{3, 4}, {}, {}, {}, {0, 1, 2}, {}};
  EXPECT_EQ(inputs(Collective::AllReduce), whole);
  EXPECT_EQ(outputs(Collective::AllReduce), whole);
  EXPECT_EQ(inputs(Collective::Reduce), whole);
  EXPECT_EQ(outputs(Collective::Reduce), rootsWhole);
  EXPECT_EQ(inputs(Collective::Broadcast), rootsWhole);
  EXPECT_EQ(outputs(Collective::Broadcast), whole);
  EXPECT_EQ(inputs(Collective::AllGather), own);
  EXPECT_EQ(outputs(Collective::AllGather), everything);
  EXPECT_EQ(inputs(Collective::ReduceScatter), everything);
  EXPECT_EQ(outputs(Collective::ReduceScatter), own);
  EXPECT_EQ(inputs(Collective::Gather), own);
  EXPECT_EQ(outputs(Collective::Gather), rootsEverything);
  EXPECT_EQ(inputs(Collective::Scatter), rootsEverything);
  EXPECT_EQ(outputs(Collective::Scatter), own);
  EXPECT_EQ(inputs(Collective::AllToAll),
            (Lists{{9, 10}, {}, {3, 4, 5}, {11, 12}, {6, 7, 8}, {0, 1, 2}}));
  EXPECT_EQ(outputs(Collective::AllToAll),
            (Lists{{9, 11}, {}, {1, 4, 7}, {10, 12}, {2, 5, 8}, {0, 3, 6}}));
}

TEST(Shape, WithoutGroupsThereIsNothing) {
  const Shape shape = makeShape(Collective::AllToAll, 3, {});
  EXPECT_THAT(shape.blocks, IsEmpty());
  EXPECT_THAT(inputBlocks(shape, 1), IsEmpty());
}

}  // namespace
}  // namespace byway
