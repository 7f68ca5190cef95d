// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include "byway/planner/construction_testing.h"

namespace byway {
namespace {

// 1 over 1 + H (g^(K-1) - 1) / (g^K - 1); its limit for g = 1.
double formula(int n, int members, int stages) {
  const double g = members - 1, h = n - members;
  if (members == 2) return 1 / (1 + h * (stages - 1) / stages);
  return 1 / (1 + h * (std::pow(g, stages - 1) - 1) / (std::pow(g, stages) - 1));
}

void sweep(Collective collective, int root) {
  for (const int n : {3, 4, 6, 8, 12}) {
    for (int members = 2; members < n; ++members) {
      const Cell cell = cellOf({collective, n, members, 1, 1, root});
      const auto candidates = s4Candidates(cell);
      EXPECT_FALSE(candidates.empty());
      for (const Candidate& c : candidates) {
        if (n > 8 && c.stages > 6) continue;
        expectAsStated(c, cell, formula(n, members, c.stages));
      }
    }
  }
}

TEST(S4, AllGatherIsRightAndReachesItsValue) { sweep(Collective::AllGather, 0); }
TEST(S4, ReduceScatterIsRightAndReachesItsValue) { sweep(Collective::ReduceScatter, 0); }
TEST(S4, GatherIsRightForAnyRoot) {
  for (const int root : {0, 1, 2}) sweep(Collective::Gather, root);
}
TEST(S4, ScatterIsRightForAnyRoot) {
  for (const int root : {0, 1, 2}) sweep(Collective::Scatter, root);
}

TEST(S4, HasTheValuesOfTheReference) {
  for (const Collective collective : {Collective::AllGather, Collective::ReduceScatter}) {
    const auto four = s4Candidates(cellOf({collective, 8, 4}));
    EXPECT_DOUBLE_EQ(valueOf(four, "S4 K=2"), 1.0 / 2);
    EXPECT_DOUBLE_EQ(valueOf(four, "S4 K=3"), 13.0 / 29);
    EXPECT_DOUBLE_EQ(valueOf(four, "S4 K=4"), 10.0 / 23);
    const auto three = s4Candidates(cellOf({collective, 8, 3}));
    EXPECT_DOUBLE_EQ(valueOf(three, "S4 K=2"), 3.0 / 8);
    EXPECT_DOUBLE_EQ(valueOf(three, "S4 K=3"), 7.0 / 22);
    const auto pair = s4Candidates(cellOf({collective, 8, 2}));
    EXPECT_DOUBLE_EQ(valueOf(pair, "S4 K=3"), 1.0 / 5);
    EXPECT_DOUBLE_EQ(valueOf(pair, "S4 K=8"), 4.0 / 25);
    EXPECT_DOUBLE_EQ(valueOf(pair, "S4 K=16"), 8.0 / 53);
  }
}

// Stages 3 : 2 : 4/3 instead of 9 : 3 : 1.
TEST(S4, WidePartialsRebalanceTheStages) {
  const Cell cell = cellOf({Collective::ReduceScatter, 8, 4, 1, 2});
  const auto candidates = s4Candidates(cell);
  expectAsStated(named(candidates, "S4 K=2"), cell, 5.0 / 9);
  expectAsStated(named(candidates, "S4 K=3"), cell, 19.0 / 39);
  for (const int members : {2, 3, 5}) {
    for (const double weight : {2.0, 4.0, 8.0}) {
      const Cell other = cellOf({Collective::ReduceScatter, 8, members, 1, weight});
      for (const Candidate& c : s4Candidates(other)) {
        if (c.stages <= 6) expectAsStated(c, other, c.value);
      }
    }
  }
}

TEST(S4, APairFormsNoPartials) {
  const Cell cell = cellOf({Collective::ReduceScatter, 8, 2, 1, 4});
  for (const Candidate& c : s4Candidates(cell)) expectAsStated(c, cell, formula(8, 2, c.stages));
}

TEST(S4, AHelperOfAPairKeepsAtMostATenth) {
  for (const Collective collective : {Collective::AllGather, Collective::ReduceScatter,
                                      Collective::Gather, Collective::Scatter}) {
    const Cell cell = cellOf({collective, 8, 2});
    EXPECT_LE(built(named(s4Candidates(cell), "S4 K=8"), cell).need.helper, 0.1 + 1e-6);
  }
}

TEST(S4, CoversOneGroupWithHelpersOnly) {
  EXPECT_TRUE(s4Candidates(cellOf({Collective::AllGather, 8, 8})).empty());
  EXPECT_TRUE(s4Candidates(cellOf({Collective::AllGather, 8, 4, 2})).empty());
  EXPECT_TRUE(s4Candidates(cellOf({Collective::AllReduce, 8, 4})).empty());
}

}  // namespace
}  // namespace byway
