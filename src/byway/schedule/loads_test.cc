// SPDX-License-Identifier: BSD-3-Clause
// Loads and stage memory of schedules small enough to be worked out by hand.
#include "byway/schedule/loads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "byway/schedule/schedule_test_util.h"

namespace byway {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing_util::Hand;

// Allreduce of 0 and 1 with helper 2, half of it relayed.
TEST(Loads, OfARelayedPair) {
  const std::vector<double> size{100};
  const Loads loads = loadsOf(testing_util::relayedPairs({{0, 1}}, 3), size);
  EXPECT_EQ(loads.ranks, 3);
  ASSERT_EQ(loads.byPhase.size(), 2u);
  EXPECT_THAT(loads.byPhase[0], ElementsAre(0, 50, 50,  //
                                            50, 0, 50,  //
                                            0, 0, 0));
  EXPECT_THAT(loads.byPhase[1], ElementsAre(0, 0, 0,  //
                                            0, 0, 0,  //
                                            50, 50, 0));
  EXPECT_THAT(loads.total, ElementsAre(0, 50, 50,  //
                                       50, 0, 50,  //
                                       50, 50, 0));
  EXPECT_THAT(loads.phaseMax, ElementsAre(50, 50));
  EXPECT_THAT(loads.messages, ElementsAre(2, 2, 2));
  EXPECT_DOUBLE_EQ(loads.sumOfMax(), 100);
}

// Blocks 0, 1, 2 of sizes 1, 10, 100 go to the helper twice and come back as partials of weight 2.
TEST(Loads, OfUnequalBlocksAndPartials) {
  const std::vector<double> sizes{1, 10, 100};
  const Loads loads = loadsOf(testing_util::reduceScatterByPartials(), sizes, 2);
  EXPECT_THAT(loads.total, ElementsAre(0, 0, 0, 110,  //
                                       0, 0, 0, 101,  //
                                       0, 0, 0, 11,   //
                                       2, 20, 200, 0));
  EXPECT_THAT(loads.phaseMax, ElementsAre(110, 200));
  EXPECT_THAT(loads.messages, ElementsAre(2, 2, 2, 3));
  EXPECT_DOUBLE_EQ(loads.sumOfMax(), 310);
}

TEST(Loads, AddUpTheMessagesOfALinkAndThePiecesOfAMessage) {
  const std::vector<double> sizes{2, 4, 8};
  const Loads loads = loadsOf(testing_util::coalescedScatter(), sizes);
  // Root 2: half of block 0 to 1, half of block 2 to 3, the other halves in one message to 0.
  EXPECT_THAT(loads.byPhase[0], ElementsAre(0, 0, 0, 0,  //
                                            0, 0, 0, 0,  //
                                            5, 1, 0, 4,  //
                                            0, 0, 0, 0));
  EXPECT_THAT(loads.byPhase[1], ElementsAre(0, 1, 0, 4,  //
                                            0, 0, 0, 0,  //
                                            0, 0, 0, 0,  //
                                            0, 0, 0, 0));
  EXPECT_THAT(loads.messages, ElementsAre(2, 0, 3, 0));
}

TEST(Loads, OfNothing) {
  const Loads loads = loadsOf(ScheduleBuilder(makeShape(Collective::Gather, 2, {})).finish(), {});
  EXPECT_EQ(loads.byPhase.size(), 0u);
  EXPECT_THAT(loads.total, ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(loads.sumOfMax(), 0);
}

TEST(StageNeed, CountsEverySlotAtItsLargest) {
  const std::vector<double> size{100};
  // Helper: two slots of half; members: one each.
  const StageNeed relayed = stageNeed(testing_util::relayedPairs({{0, 1}}, 3), size);
  EXPECT_DOUBLE_EQ(relayed.helper, 100);
  EXPECT_DOUBLE_EQ(relayed.any, 100);
  // Three foreign contributions, then partial sums of 16, 16 and 3 members; no helper.
  const StageNeed large = stageNeed(testing_util::exchange(testing_util::upTo(35), 35), size, 2);
  EXPECT_DOUBLE_EQ(large.helper, 0);
  EXPECT_DOUBLE_EQ(large.any, 34 * 100 + 3 * 200);
}

TEST(StageNeed, OfHelpersIsApartFromMembers) {
  const std::vector<double> sizes{1, 10, 100};
  const StageNeed need = stageNeed(testing_util::reduceScatterByPartials(), sizes, 2);
  EXPECT_DOUBLE_EQ(need.helper, 2 * 111 + 2 * 111);
  EXPECT_DOUBLE_EQ(need.any, 444);
  const StageNeed members = stageNeed(testing_util::exchange({0, 1, 2}, 4), std::vector<double>{5});
  EXPECT_DOUBLE_EQ(members.helper, 0);
  EXPECT_DOUBLE_EQ(members.any, 10);
}

TEST(StageNeed, CountsWhatIsNeverRead) {
  Hand h(makeShape(Collective::AllReduce, 3, {Group{{0, 1}, 0}}));
  h.beginPhase();
  h.transfer(h.in(0), h.slot(2));
  h.fold(h.slot(1, 0, 0, Width::Accumulator), {h.in(1)}, 1);
  const StageNeed need = stageNeed(std::move(h).finish(), std::vector<double>{3}, 4);
  EXPECT_DOUBLE_EQ(need.helper, 3);
  EXPECT_DOUBLE_EQ(need.any, 12);
}

// The helper keeps as much as a block has, in two slots, each with room for two more units.
TEST(Rounds, FollowFromTheLargestNeedAndTheQuota) {
  const Schedule schedule = testing_util::relayedPairs({{0, 1}}, 3);
  const auto of = [&](double bytes, std::uint64_t quota) {
    return roundsFor(schedule, std::vector<double>{bytes}, 1, quota);
  };
  constexpr double kSlack = 2 * 64 * 2;
  EXPECT_EQ(of(100, 1 << 20).count, 1u);
  EXPECT_EQ(of(10000 - kSlack, 10000).count, 1u);
  const Rounds two = of(4000, 2 * 4096);
  EXPECT_EQ(two.count, 1u);
  const Rounds many = of(100000, 2 * 4096);
  EXPECT_EQ(many.stage, 4096u);
  EXPECT_EQ(many.count, static_cast<std::uint32_t>(100000 / (4096 - kSlack)) + 1);
  EXPECT_EQ(of(100000, 2 * 256).count, 0u);
  EXPECT_GT(of(100000, of(100000, 2 * 256).stage).count, 1u);
}

TEST(Rounds, SchedulesWithoutStageNeedNone) {
  const Rounds rounds =
      roundsFor(testing_util::allGather(3), std::vector<double>{1e12, 1e12, 1e12}, 1, 64);
  EXPECT_EQ(rounds.count, 1u);
  EXPECT_EQ(rounds.stage, 0u);
}

TEST(StageNeed, ReusesSlots) {
  Schedule s = testing_util::slotReuse(2);
  EXPECT_DOUBLE_EQ(stageNeed(s, std::vector<double>{8}).helper, 4);
  s.shape.blocks[0].shares = {kWhole / 4, kWhole / 4 * 3};
  EXPECT_DOUBLE_EQ(stageNeed(s, std::vector<double>{8}).helper, 6);
}

}  // namespace
}  // namespace byway
