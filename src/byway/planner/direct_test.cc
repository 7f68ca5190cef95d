// SPDX-License-Identifier: BSD-3-Clause
#include <set>

#include "byway/planner/construction_testing.h"

namespace byway {
namespace {

// What each name promises for groups of `a` members: docs/schedules.md, section "Direct".
double formula(const Candidate& c, Collective collective, double a) {
  if (c.name.rfind("direct two-shot", 0) == 0) return 2 / a;
  if (c.name.rfind("direct K=", 0) != 0) return 1;
  EXPECT_TRUE(collective == Collective::Broadcast || collective == Collective::Reduce);
  return c.stages / ((a - 1) * (c.stages - 1) + 1);
}

void sweep(Collective collective) {
  for (const int n : {2, 3, 5, 8, 16}) {
    for (int members = 2; members <= n; members = members < 5    ? members + 1
                                                  : members == 5 ? 8
                                                                 : 2 * members) {
      for (int groups = 1; groups <= n / members; ++groups) {
        const Cell cell = cellOf({collective, n, members, groups, 1, members / 2});
        for (const Candidate& c : directCandidates(cell)) {
          if (c.stages > 8) continue;
          EXPECT_TRUE(c.direct);
          expectAsStated(c, cell, formula(c, collective, members));
        }
      }
    }
  }
}

TEST(Direct, AllReduceIsRight) { sweep(Collective::AllReduce); }
TEST(Direct, AllGatherIsRight) { sweep(Collective::AllGather); }
TEST(Direct, ReduceScatterIsRight) { sweep(Collective::ReduceScatter); }
TEST(Direct, AllToAllIsRight) { sweep(Collective::AllToAll); }
TEST(Direct, BroadcastIsRight) { sweep(Collective::Broadcast); }
TEST(Direct, ReduceIsRight) { sweep(Collective::Reduce); }
TEST(Direct, ScatterIsRight) { sweep(Collective::Scatter); }
TEST(Direct, GatherIsRight) { sweep(Collective::Gather); }

TEST(Direct, UsesOnlyLinksBetweenMembersAndNoHelpersMemory) {
  for (const Collective collective :
       {Collective::AllReduce, Collective::Broadcast, Collective::Reduce, Collective::AllToAll}) {
    const Cell cell = cellOf({collective, 8, 4});
    const std::set<int> members(cell.groups[0].ranks.begin(), cell.groups[0].ranks.end());
    for (const Candidate& c : directCandidates(cell)) {
      const Built result = built(c, cell);
      EXPECT_EQ(result.need.helper, 0);
      for (const Transfer& t : result.schedule.transfers) {
        EXPECT_TRUE(members.count(t.from.rank) == 1 && members.count(t.to.rank) == 1);
      }
    }
  }
}

// More than 16 contributions are folded in blocks of 16.
TEST(Direct, LargeGroupsAreFoldedInBlocks) {
  for (const Collective collective :
       {Collective::AllReduce, Collective::ReduceScatter, Collective::Reduce}) {
    for (const int members : {17, 18, 33, 40}) {
      const Cell cell = cellOf({collective, members + 2, members, 1, 2, 16});
      for (const Candidate& c : directCandidates(cell)) {
        if (c.stages <= 2) expectAsStated(c, cell, c.value);
      }
    }
  }
}

// Blocks of unlike sizes: the value is in units of the largest block.
TEST(Direct, UnevenCountsAndGroupsAreStillRight) {
  Cell cell;
  cell.ranks = 9;
  cell.groups = {{{8, 0}, 0}, {{5}, 0}, {{4, 2, 7, 1}, 2}};
  for (const Collective collective :
       {Collective::AllReduce, Collective::Broadcast, Collective::Reduce, Collective::AllGather,
        Collective::ReduceScatter, Collective::Gather, Collective::Scatter, Collective::AllToAll}) {
    cell.collective = collective;
    cell.partialWeight = 2;
    cell.blockBytes.clear();
    const auto blocks = makeShape(collective, cell.ranks, cell.groups).blocks.size();
    for (std::size_t b = 0; b < blocks; ++b) {
      cell.blockBytes.push_back(64.0 * static_cast<double>(3 + (5 * b) % 7));
    }
    for (const Candidate& c : directCandidates(cell)) {
      const Built result = built(c, cell);
      EXPECT_TRUE(violations(result.schedule).empty()) << c.name << toString(collective);
      EXPECT_NEAR(result.loads.sumOfMax(), c.value, 1e-6) << c.name << toString(collective);
    }
  }
}

}  // namespace
}  // namespace byway
