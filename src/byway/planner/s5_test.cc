// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/construction_testing.h"

namespace byway {
namespace {

TEST(S5, IsRightAndReachesItsValueForAnyGroup) {
  for (const int n : {3, 4, 6, 8, 12}) {
    for (int members = 2; members < n; ++members) {
      const Cell cell = cellOf({Collective::AllToAll, n, members});
      for (const Candidate& c : s5Candidates(cell)) {
        if (c.stages > (n > 8 ? 4 : 16)) continue;
        const double h = n - members, k = c.stages;
        expectAsStated(c, cell, 1 / (1 + h / (members - 1) * (k - 1) / k));
      }
    }
  }
}

TEST(S5, HasTheValuesOfTheReference) {
  const auto four = s5Candidates(cellOf({Collective::AllToAll, 8, 4}));
  EXPECT_DOUBLE_EQ(valueOf(four, "S5 K=2"), 3.0 / 5);
  EXPECT_DOUBLE_EQ(valueOf(four, "S5 K=3"), 9.0 / 17);
  EXPECT_DOUBLE_EQ(valueOf(four, "S5 K=4"), 1.0 / 2);
  EXPECT_DOUBLE_EQ(valueOf(four, "S5 K=8"), 6.0 / 13);
  EXPECT_DOUBLE_EQ(valueOf(four, "S5 K=16"), 4.0 / 9);
  EXPECT_DOUBLE_EQ(valueOf(s5Candidates(cellOf({Collective::AllToAll, 8, 2})), "S5 K=8"), 4.0 / 25);
}

TEST(S5, AHelperOfAPairKeepsAtMostATenth) {
  const Cell cell = cellOf({Collective::AllToAll, 8, 2});
  EXPECT_LE(built(named(s5Candidates(cell), "S5 K=8"), cell).need.helper, 0.1 + 1e-6);
}

// S9: one message to each peer in a stage, whatever number of pieces it carries.
TEST(S5, SendsOneMessagePerPeerAndStage) {
  const Cell cell = cellOf({Collective::AllToAll, 8, 4});
  const Schedule schedule = named(s5Candidates(cell), "S5 K=3").build();
  EXPECT_EQ(schedule.phases[1].transferCount, 4U * 7 + 4 * 4);
}

TEST(S5, CoversOneGroupWithHelpersOnly) {
  EXPECT_TRUE(s5Candidates(cellOf({Collective::AllToAll, 8, 8})).empty());
  EXPECT_TRUE(s5Candidates(cellOf({Collective::AllToAll, 8, 4, 2})).empty());
  EXPECT_TRUE(s5Candidates(cellOf({Collective::Broadcast, 8, 4})).empty());
}

}  // namespace
}  // namespace byway
