// SPDX-License-Identifier: BSD-3-Clause
// Rules V4, V8, V9 and the values of V10: what a run of the schedule leaves where.
#include <gtest/gtest.h>

#include "byway/schedule/schedule_test_util.h"
#include "byway/schedule/verify_test_util.h"

namespace byway {
namespace {

using namespace testing_util;  // NOLINT(google-build-using-namespace): the hand-written schedules

Shape pairShape(Collective collective, int ranks = 2, int parts = 1) {
  return cutEvenly(makeShape(collective, ranks, {Group{{0, 1}, 0}}), parts);
}

TEST(V4, ReadsAStageSlotBeforeItIsWritten) {
  Hand h(pairShape(Collective::Broadcast, 3));
  h.beginPhase();
  h.transfer(h.slot(2), h.out(1));
  h.keepOwn(0);
  EXPECT_TRUE(refusedBy(4, "transfer 0 reads stage of rank 2 (block 0 share 0 slot 0) before",
                        std::move(h).finish()));
}

TEST(V4, FoldsAStageSlotBeforeItIsWritten) {
  Schedule s = exchange({0, 1}, 2);
  s.slots[0]++;
  s.inputs[1].first = static_cast<std::uint32_t>(s.pieces.size());
  s.pieces.push_back(Hand::piece(0, 0, 1));
  EXPECT_TRUE(refusedBy(4, "step 0 reads stage of rank 0 (block 0 share 0 slot 1) before", s));
}

TEST(V4, ReadsAnOutputBeforeItIsWritten) {
  Hand h(pairShape(Collective::Broadcast));
  h.beginPhase();
  h.transfer(h.out(0), h.out(1));
  h.keepOwn(0);
  EXPECT_TRUE(refusedBy(4, "transfer 0 reads output of rank 0", std::move(h).finish()));
}

TEST(V4, FindsAnotherShareInTheSlot) {
  Hand h(pairShape(Collective::Broadcast, 3, 2));
  h.beginPhase();
  h.transfer(h.in(0, 0, 0), h.slot(2, 0, 0));
  h.transfer(h.in(0, 0, 1), h.out(1, 0, 1));
  h.keepOwn(0, 0, 0);
  h.keepOwn(0, 0, 1);
  h.beginPhase();
  h.transfer(h.at(2, 0, 0, 1), h.out(1, 0, 1));
  EXPECT_TRUE(refusedBy(4, "transfer 2 finds another share or width in slot 0 of rank 2",
                        std::move(h).finish()));
}

TEST(V4, FindsASlotThatWasReused) {
  Schedule s = slotReuse(2);
  // Both receives, then both sends: the first share is lost.
  std::swap(s.transfers[1], s.transfers[2]);
  EXPECT_TRUE(refusedBy(4, "transfer 2 finds another share or width in slot 0 of rank 2", s));
}

TEST(V4, FindsAnotherWidthInTheSlot) {
  Schedule s = reduceScatterByPartials();
  // The partial is sent and folded as if it were a raw contribution.
  s.transfers[6].from.width = s.transfers[6].to.width = s.inputs[6].width = Width::Element;
  EXPECT_TRUE(refusedBy(4, "transfer 6 finds another share or width in slot 6 of rank 3", s));
}

TEST(V4, TakesARawContributionForAPartial) {
  Schedule s = exchange({0, 1}, 2);
  s.inputs[1].width = Width::Accumulator;
  EXPECT_TRUE(refusedBy(4, "step 0 finds another share or width in slot 0 of rank 0", s));
}

TEST(V8, LacksAContribution) {
  Schedule s = exchange({0, 1, 2}, 3);
  s.inputs.erase(s.inputs.begin());
  s.steps[0].inputCount = 2;
  for (std::size_t i = 1; i < 3; ++i) s.steps[i].firstInput--;
  EXPECT_TRUE(refusedBy(8,
                        "rank 0 block 0 share 0 ends as finished(x1 + x2)/3 instead of "
                        "finished(x0 + x1 + x2)/3",
                        s));
}

TEST(V8, CountsAContributionTwice) {
  Schedule s = exchange({0, 1}, 2);
  s.inputs[0] = s.inputs[1];
  EXPECT_TRUE(refusedBy(8, "ends as finished(x1 + x1)/2 instead of finished(x0 + x1)/2", s));
}

TEST(V8, CountsAPartialTwice) {
  Schedule s = reduceScatterByPartials();
  s.inputs[7] = s.inputs[6];
  EXPECT_TRUE(refusedBy(8, "ends as finished(x1 + x2 + (x1 + x2))/3", s));
}

TEST(V8, FoldsInAnotherOrder) {
  Schedule s = exchange({0, 1}, 2);
  std::swap(s.inputs[2], s.inputs[3]);
  EXPECT_TRUE(refusedBy(8, "rank 1 block 0 share 0 ends as finished(x1 + x0)/2", s));
}

TEST(V8, FoldsTheOwnerFirst) {
  Schedule s = reduceScatterByPartials();
  std::swap(s.inputs[6], s.inputs[7]);
  EXPECT_TRUE(
      refusedBy(8, "ends as finished(x0 + (x1 + x2))/3 instead of finished(x1 + x2 + x0)/3", s));
}

TEST(V8, FoldsByRankInsteadOfByPosition) {
  Schedule s = exchange({1, 0}, 2);
  EXPECT_TRUE(accepted(s));
  std::swap(s.shape.groups[0].ranks[0], s.shape.groups[0].ranks[1]);
  EXPECT_TRUE(refusedBy(8, "finished(x1 + x0)/2", s));
}

// 17 contributions in a row are not two blocks; 16 are one.
TEST(V8, FoldsALargeGroupWithoutBlocks) {
  const auto inARow = [](int size) {
    Schedule s = exchange(upTo(size), size);
    Hand h(s.shape);
    std::vector<Ref> terms{h.in(0)};
    h.beginPhase();
    for (int from = 1; from < size; ++from) {
      terms.push_back(h.slot(0));
      h.transfer(h.in(from), terms.back());
    }
    h.reduce(h.out(0), terms, size);
    h.beginPhase();
    for (int to = 1; to < size; ++to) h.transfer(h.out(0), h.out(to));
    return std::move(h).finish();
  };
  EXPECT_TRUE(accepted(inARow(16)));
  EXPECT_TRUE(accepted(inARow(17)));  // the second block is one contribution
  EXPECT_TRUE(refusedBy(8, "x16 + x17)/18 instead of finished(x0", inARow(18)));
}

TEST(V8, FoldsBlocksOfAnotherSize) {
  Schedule s = exchange(upTo(18), 18);
  // x15 moves from the first block of rank 0 to the second.
  s.steps[0].inputCount = 15;
  s.steps[1].firstInput = 15;
  s.steps[1].inputCount = 3;
  EXPECT_TRUE(refusedBy(8, "x13 + x14 + (x15 + x16 + x17))/18 instead of", s));
}

TEST(V8, LacksAResult) {
  Schedule s = allGather(2);
  s.steps.pop_back();
  s.inputs.pop_back();
  s.phases[0].stepCount--;
  EXPECT_TRUE(refusedBy(8, "rank 1 block 1 share 0 ends as nothing instead of x1", s));
}

TEST(V8, SendsToAnotherMember) {
  Schedule s = forwardedBroadcast();
  // The last transfer should have gone to rank 1.
  s.phases.push_back({6, 1, 3, 0});
  s.phases[1].transferCount--;
  s.transfers.back().to.rank = 0;
  EXPECT_TRUE(refusedBy(8, "rank 1 block 0 share 2 ends as nothing instead of x0", s));
}

TEST(V8, LeavesARawContribution) {
  Hand h(makeShape(Collective::AllReduce, 1, {Group{{0}, 0}}));
  h.beginPhase();
  h.copy(h.out(0), h.in(0), false);
  EXPECT_TRUE(refusedBy(8, "ends as x0 instead of finished(x0)/1", std::move(h).finish()));
}

TEST(V9, ReadsAnInputThatItsOutputReplaced) {
  Hand h(pairShape(Collective::AllReduce));
  const Ref atZero = h.slot(0);
  const Ref atOne = h.slot(1);
  h.beginPhase();
  h.transfer(h.in(1), atZero);
  h.fold(h.out(0), {h.in(0), atZero}, 2);
  h.beginPhase();
  h.transfer(h.in(0), atOne);  // too late: out(0) may be the same memory
  h.fold(h.out(1), {atOne, h.in(1)}, 2);
  EXPECT_TRUE(refusedBy(9,
                        "transfer 1 reads finished(x0 + x1)/2 in place instead of x0 (block 0 "
                        "share 0 on rank 0)",
                        std::move(h).finish()));
}

TEST(V9, FoldsAnInputAfterTheResultArrived) {
  Hand h(pairShape(Collective::AllReduce, 3));
  const Ref a = h.slot(2);
  const Ref b = h.slot(2);
  h.beginPhase();
  h.transfer(h.in(0), a);
  h.transfer(h.in(1), b);
  h.fold(a, {a, b}, 2);
  h.beginPhase();
  h.transfer(a, h.out(0));
  h.transfer(a, h.out(1));
  h.fold(h.slot(0, 0, 0, Width::Accumulator), {h.in(0)}, 2);
  EXPECT_TRUE(refusedBy(9, "step 1 reads finished(x0 + x1)/2 in place instead of x0",
                        std::move(h).finish()));
}

TEST(V9, OverwritesWhatItStillFolds) {
  Schedule s = exchange({0}, 1);
  s.steps.push_back(s.steps[0]);
  s.steps[1].firstInput = 1;
  s.inputs.push_back(s.inputs[0]);
  s.phases[0].stepCount = 2;
  EXPECT_TRUE(refusedBy(9, "step 1 reads finished(x0)/1 in place instead of x0", s));
}

// Input and Output of an all-to-all are never the same memory.
TEST(V9, IsNotAskedOfAllToAll) { EXPECT_TRUE(accepted(allToAll(4))); }

TEST(V10, ReducesInAMove) {
  Hand h(pairShape(Collective::Broadcast));
  h.beginPhase();
  h.transfer(h.in(0), h.out(1));
  h.fold(h.out(0), {h.in(0)}, 2);
  EXPECT_TRUE(refusedBy(10, "step 0 reduces in broadcast", std::move(h).finish()));
}

TEST(V10, FoldsAFinishedValue) {
  Hand h(pairShape(Collective::AllReduce));
  const Ref slot = h.slot(1);
  h.beginPhase();
  h.transfer(h.in(1), h.slot(0));
  h.fold(h.out(0), {h.in(0), h.at(0, 0)}, 2);
  h.beginPhase();
  h.transfer(h.out(0), slot);
  h.fold(h.out(1), {slot, h.in(1)}, 2);
  EXPECT_TRUE(refusedBy(10, "step 1 folds a finished value", std::move(h).finish()));
}

TEST(V10, DividesByAnotherNumber) {
  Schedule s = exchange({0, 1}, 2);
  s.steps[1].divisor = 1;
  EXPECT_TRUE(refusedBy(10, "step 1 divides by 1 in a group of 2", s));
}

// A helper of two groups divides by each one's size.
TEST(V10, DividesByTheSizeOfAnotherGroup) {
  Hand h(makeShape(Collective::AllReduce, 3, {Group{{0, 1}, 0}, Group{{2}, 0}}));
  h.beginPhase();
  h.transfer(h.in(1, 0), h.slot(0, 0));
  h.transfer(h.in(0, 0), h.slot(1, 0));
  h.fold(h.out(0, 0), {h.in(0, 0), h.at(0, 0)}, 2);
  h.fold(h.out(1, 0), {h.at(1, 0), h.in(1, 0)}, 2);
  h.fold(h.out(2, 1), {h.in(2, 1)}, 2);
  EXPECT_TRUE(refusedBy(10, "step 2 divides by 2 in a group of 1", std::move(h).finish()));
}

}  // namespace
}  // namespace byway
