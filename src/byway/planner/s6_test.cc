// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/construction_testing.h"

namespace byway {
namespace {

TEST(S6, IsRightAndReachesThreeFifthsInAnyNumberOfPieces) {
  const Cell cell = cellOf({Collective::AllToAll, 8, 4, 2});
  const auto candidates = s6Candidates(cell);
  EXPECT_EQ(candidates.size(), 4U);
  for (const Candidate& c : candidates) expectAsStated(c, cell, 0.6);
}

TEST(S6, EveryLinkIsBusyInEveryPhase) {
  const Cell cell = cellOf({Collective::AllToAll, 8, 4, 2});
  const Built result = built(named(s6Candidates(cell), "S6 P=2"), cell);
  for (std::size_t phase = 0; phase < result.loads.byPhase.size(); ++phase) {
    for (std::size_t link = 0; link < 64; ++link) {
      if (link / 8 == link % 8) continue;
      EXPECT_NEAR(result.loads.byPhase[phase][link], result.loads.phaseMax[phase], 1e-6);
    }
  }
}

TEST(S6, RelaysOverTwentyFourRoutesAGroup) {
  const Cell cell = cellOf({Collective::AllToAll, 8, 4, 2});
  const Schedule schedule = named(s6Candidates(cell), "S6 P=1").build();
  std::size_t relayed = 0;
  for (const Block& block : schedule.shape.blocks) {
    if (block.source != block.destination) {
      relayed += block.shares.size() - static_cast<std::size_t>(block.directShares);
    }
  }
  EXPECT_EQ(relayed, 48U);
}

TEST(S6, CoversTwoGroupsOfFourOnly) {
  EXPECT_TRUE(s6Candidates(cellOf({Collective::AllToAll, 8, 2, 4})).empty());
  EXPECT_TRUE(s6Candidates(cellOf({Collective::AllToAll, 12, 4, 3})).empty());
  EXPECT_TRUE(s6Candidates(cellOf({Collective::AllToAll, 12, 4, 2})).empty());
  EXPECT_TRUE(s6Candidates(cellOf({Collective::AllGather, 8, 4, 2})).empty());
}

}  // namespace
}  // namespace byway
