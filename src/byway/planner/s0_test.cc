// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/construction_testing.h"

namespace byway {
namespace {

struct Formula {
  Collective collective;
  double (*value)(double n, double a, double w);  // docs/schedules.md; w only where A > 2
};

constexpr Formula kFormulas[] = {
    {Collective::AllReduce, [](double n, double, double) { return 2 / n; }},
    {Collective::AllGather, [](double n, double a, double) { return a / n; }},
    {Collective::Gather, [](double n, double a, double) { return a / n; }},
    {Collective::Scatter, [](double n, double a, double) { return a / n; }},
    {Collective::ReduceScatter,
     [](double n, double a, double w) { return (a - 1 + w) / (n - 1 + w); }},
    {Collective::AllToAll,
     [](double n, double a, double) { return 1 / (1 + (n - a) / (2 * (a - 1))); }},
    {Collective::Broadcast, [](double n, double, double) { return 2 / n; }},
    {Collective::Reduce, [](double n, double, double w) { return (1 + w) / n; }},
};

void sweep(Collective collective, double (*value)(double, double, double), double weight) {
  for (const int n : {4, 6, 8, 9, 12}) {
    for (int members = 2; members < n; ++members) {
      if (n % members != 0) continue;
      for (const int root : {0, members - 1}) {
        const Cell cell = cellOf({collective, n, members, n / members, weight, root});
        const auto candidates = s0Candidates(cell);
        EXPECT_EQ(candidates.size(), 4U);
        for (const Candidate& c : candidates) {
          expectAsStated(c, cell, value(n, members, members > 2 ? weight : 1));
        }
        if (!hasRoot(collective)) break;
      }
    }
  }
}

TEST(S0, IsRightAndReachesItsValueInAnyNumberOfPieces) {
  for (const Formula& f : kFormulas) sweep(f.collective, f.value, 1);
}

TEST(S0, WidePartialsAreBalanced) {
  for (const Formula& f : kFormulas) {
    if (reduces(f.collective)) sweep(f.collective, f.value, 2);
  }
  const auto wide = s0Candidates(cellOf({Collective::ReduceScatter, 8, 4, 2, 2}));
  EXPECT_DOUBLE_EQ(valueOf(wide, "S0 P=1"), 5.0 / 9);
}

// What crosses between groups and inside them fills every link in every phase.
TEST(S0, EveryLinkIsBusyInEveryPhase) {
  for (const Collective collective : {Collective::AllReduce, Collective::AllGather,
                                      Collective::ReduceScatter, Collective::AllToAll}) {
    for (const int members : {2, 4}) {
      const Cell cell = cellOf({collective, 8, members, 8 / members, 2});
      for (const Candidate& c : s0Candidates(cell)) {
        const Loads loads = built(c, cell).loads;
        for (std::size_t phase = 0; phase < loads.byPhase.size(); ++phase) {
          for (std::size_t link = 0; link < 64; ++link) {
            if (link / 8 == link % 8) continue;
            EXPECT_NEAR(loads.byPhase[phase][link], loads.phaseMax[phase], 1e-6)
                << c.name << toString(collective) << " phase " << phase << " link " << link;
          }
        }
      }
    }
  }
}

TEST(S0, CoversGroupsOfOneSizeThatCoverAllRanks) {
  EXPECT_TRUE(s0Candidates(cellOf({Collective::AllReduce, 8, 4})).empty());
  EXPECT_TRUE(s0Candidates(cellOf({Collective::AllReduce, 8, 3, 2})).empty());
  EXPECT_TRUE(s0Candidates(cellOf({Collective::AllReduce, 8, 8})).empty());
  Cell uneven = cellOf({Collective::AllReduce, 8, 4, 2});
  uneven.blockBytes = {100, 200};
  EXPECT_TRUE(s0Candidates(uneven).empty());
}

}  // namespace
}  // namespace byway
