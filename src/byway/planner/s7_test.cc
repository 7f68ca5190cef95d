// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include "byway/planner/construction_testing.h"

namespace byway {
namespace {

void sweepSingle(Collective collective) {
  for (const int n : {3, 4, 6, 8, 12, 16}) {
    for (int members = 2; members < n; ++members) {
      for (const int root : {0, members - 1}) {
        const Cell cell = cellOf({collective, n, members, 1, 1, root});
        const auto candidates = s7Candidates(cell);
        EXPECT_FALSE(candidates.empty());
        for (const Candidate& c : candidates) {
          if (n > 8 && c.stages > 6) continue;
          expectAsStated(c, cell, 1 / ((n - 1) - (n - 2.0) / c.stages));
        }
      }
    }
  }
}

void sweepPairOfGroups(Collective collective) {
  for (const int members : {2, 3, 4, 6}) {
    for (const int root : {0, members - 1}) {
      const Cell cell = cellOf({collective, 2 * members, members, 2, 1, root});
      for (const Candidate& c : s7Candidates(cell)) {
        const double k = c.stages;
        expectAsStated(c, cell, k / ((2 * members - 2) * (k - 1) + 2));
      }
    }
  }
}

TEST(S7, BroadcastIsRightAndReachesItsValueForAnyRoot) { sweepSingle(Collective::Broadcast); }
TEST(S7, ReduceIsRightAndReachesItsValueForAnyRoot) { sweepSingle(Collective::Reduce); }
TEST(S7, BroadcastOfTwoGroupsIsRight) { sweepPairOfGroups(Collective::Broadcast); }
TEST(S7, ReduceOfTwoGroupsIsRight) { sweepPairOfGroups(Collective::Reduce); }

TEST(S7, HasTheValuesOfTheReference) {
  const auto single = s7Candidates(cellOf({Collective::Broadcast, 8, 4}));
  EXPECT_DOUBLE_EQ(valueOf(single, "S7 K=2"), 1.0 / 4);
  EXPECT_DOUBLE_EQ(valueOf(single, "S7 K=4"), 2.0 / 11);
  EXPECT_DOUBLE_EQ(valueOf(single, "S7 K=8"), 4.0 / 25);
  const auto fused = s7Candidates(cellOf({Collective::Broadcast, 8, 4, 2}));
  EXPECT_DOUBLE_EQ(valueOf(fused, "S7 K=2"), 1.0 / 4);
  EXPECT_DOUBLE_EQ(valueOf(fused, "S7 K=4"), 1.0 / 5);
  EXPECT_DOUBLE_EQ(valueOf(fused, "S7 K=8"), 2.0 / 11);
}

// Chunks 1, w, w^2, ...: (w^K - 1) / (w - 1) of the first, which is 1 over 1 + (n-1) of them all.
TEST(S7, WidePartialsGrowTheChunks) {
  for (const int members : {3, 4, 7}) {
    for (const double w : {2.0, 4.0}) {
      const Cell cell = cellOf({Collective::Reduce, 8, members, 1, w});
      for (const Candidate& c : s7Candidates(cell)) {
        const double chunks = (std::pow(w, c.stages - 1) - 1) / (w - 1);
        expectAsStated(c, cell, (std::pow(w, c.stages) - 1) / (w - 1) / (7 * chunks + 1));
      }
    }
  }
  const auto two = s7Candidates(cellOf({Collective::Reduce, 8, 4, 1, 2}));
  EXPECT_DOUBLE_EQ(valueOf(two, "S7 K=2"), 3.0 / 8);
  EXPECT_DOUBLE_EQ(valueOf(two, "S7 K=3"), 7.0 / 22);
  const Cell fused = cellOf({Collective::Reduce, 8, 4, 2, 2});
  for (const Candidate& c : s7Candidates(fused)) expectAsStated(c, fused, c.value);
}

TEST(S7, APairFormsNoPartials) {
  const Cell cell = cellOf({Collective::Reduce, 8, 2, 1, 4});
  for (const Candidate& c : s7Candidates(cell)) {
    expectAsStated(c, cell, 1 / (7 - 6.0 / c.stages));
  }
}

TEST(S7, AHelperOfAPairKeepsAtMostATenth) {
  for (const Collective collective : {Collective::Broadcast, Collective::Reduce}) {
    const Cell cell = cellOf({collective, 8, 2});
    EXPECT_LE(built(named(s7Candidates(cell), "S7 K=8"), cell).need.helper, 0.1 + 1e-6);
  }
}

TEST(S7, CoversOneGroupWithHelpersOrTwoThatCoverAllRanks) {
  EXPECT_TRUE(s7Candidates(cellOf({Collective::Broadcast, 8, 8})).empty());
  EXPECT_TRUE(s7Candidates(cellOf({Collective::Broadcast, 8, 3, 2})).empty());
  EXPECT_TRUE(s7Candidates(cellOf({Collective::Reduce, 8, 2, 4})).empty());
  EXPECT_TRUE(s7Candidates(cellOf({Collective::AllReduce, 8, 4})).empty());
}

}  // namespace
}  // namespace byway
