// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/construction_testing.h"

namespace byway {
namespace {

TEST(S3, IsRightAndReachesItsValueForAnyGroup) {
  for (const int n : {3, 4, 6, 8, 11, 16}) {
    for (int members = 2; members < n; ++members) {
      const Cell cell = cellOf({Collective::AllReduce, n, members});
      for (const Candidate& c : s3Candidates(cell)) {
        if (n > 8 && c.stages > 6) continue;
        const double h = n - members, a = members, k = c.stages;
        expectAsStated(c, cell, 2 / a / (1 + 2 * h / a - 2 * h / (a * k)));
      }
    }
  }
}

TEST(S3, HasTheValuesOfTheReference) {
  const auto pair = s3Candidates(cellOf({Collective::AllReduce, 8, 2}));
  EXPECT_DOUBLE_EQ(valueOf(pair, "S3 K=2"), 1.0 / 4);
  EXPECT_DOUBLE_EQ(valueOf(pair, "S3 K=4"), 2.0 / 11);
  EXPECT_DOUBLE_EQ(valueOf(pair, "S3 K=8"), 4.0 / 25);
  const auto three = s3Candidates(cellOf({Collective::AllReduce, 8, 3}));
  EXPECT_DOUBLE_EQ(valueOf(three, "S3 K=4"), 4.0 / 21);
  EXPECT_DOUBLE_EQ(valueOf(three, "S3 K=8"), 8.0 / 47);
  const auto four = s3Candidates(cellOf({Collective::AllReduce, 8, 4}));
  EXPECT_DOUBLE_EQ(valueOf(four, "S3 K=3"), 3.0 / 14);
  EXPECT_DOUBLE_EQ(valueOf(four, "S3 K=16"), 4.0 / 23);
}

TEST(S3, MovesNoPartialsSoTheirWeightChangesNothing) {
  const Cell cell = cellOf({Collective::AllReduce, 8, 4, 1, 4});
  for (const Candidate& c : s3Candidates(cell)) {
    if (c.stages <= 8) expectAsStated(c, cell, c.stages / (4.0 * (c.stages - 1) + 2.0 * c.stages));
  }
}

// Three slots for the sum, two for the other contribution, each S / 50.
TEST(S3, AHelperOfAPairKeepsATenth) {
  const Cell cell = cellOf({Collective::AllReduce, 8, 2});
  EXPECT_NEAR(built(named(s3Candidates(cell), "S3 K=8"), cell).need.helper, 0.1, 1e-6);
}

TEST(S3, CoversOneGroupWithHelpersOnly) {
  EXPECT_TRUE(s3Candidates(cellOf({Collective::AllReduce, 8, 8})).empty());
  EXPECT_TRUE(s3Candidates(cellOf({Collective::AllReduce, 8, 2, 4})).empty());
  EXPECT_TRUE(s3Candidates(cellOf({Collective::AllGather, 8, 2})).empty());
}

TEST(S3, AGroupOfOneBesideItIsLocalAndHelps) {
  Cell cell = cellOf({Collective::AllReduce, 8, 2});
  const int lonely = cell.helpersOf(0)[2];
  cell.groups.insert(cell.groups.begin(), Group{{lonely}, 0});
  for (const Candidate& c : s3Candidates(cell)) {
    const Schedule schedule = c.build();
    EXPECT_TRUE(violations(schedule).empty()) << c.name;
    EXPECT_NEAR(loadsOf(schedule, std::vector<double>(2, 1.0)).sumOfMax(), c.value, 1e-6);
    if (c.stages > 4) break;
  }
}

}  // namespace
}  // namespace byway
