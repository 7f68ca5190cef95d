// SPDX-License-Identifier: BSD-3-Clause
// Rules V1, V2, V3, V5 and the form of V10: each test breaks a right schedule in one place.
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "byway/schedule/schedule_test_util.h"
#include "byway/schedule/verify_test_util.h"

namespace byway {
namespace {

using namespace testing_util;  // NOLINT(google-build-using-namespace): the hand-written schedules

testing::AssertionResult broken(int rule, const char* text, Schedule schedule,
                                const std::function<void(Schedule&)>& change) {
  if (const auto right = accepted(schedule); !right) return right;
  change(schedule);
  return refusedBy(rule, text, schedule);
}

Schedule pair() { return exchange({0, 1}, 2); }
Schedule relayed() { return relayedPairs({{0, 1}}, 3); }

Piece& firstPiece(Schedule& s, const Ref& ref) { return s.pieces[ref.first]; }

TEST(V1, NamesAShareThatTheBlockLacks) {
  EXPECT_TRUE(broken(1, "no share 7 of block 0", pair(),
                     [](Schedule& s) { firstPiece(s, s.transfers[0].from).share = 7; }));
}

TEST(V1, NamesABlockThatTheShapeLacks) {
  EXPECT_TRUE(broken(1, "no share 0 of block 1", pair(),
                     [](Schedule& s) { firstPiece(s, s.steps[0].to).block = 1; }));
}

TEST(V1, NamesASlotThatTheRankLacks) {
  EXPECT_TRUE(broken(1, "rank 0 has no slot 0", pair(), [](Schedule& s) { s.slots[0] = 0; }));
}

TEST(V1, NamesARankOutsideTheCommunicator) {
  EXPECT_TRUE(broken(1, "rank 2 of 2", pair(), [](Schedule& s) { s.transfers[0].to.rank = 2; }));
  EXPECT_TRUE(broken(1, "rank -1 of 2", pair(), [](Schedule& s) { s.inputs[0].rank = -1; }));
}

TEST(V1, NamesPiecesOutsideTheList) {
  EXPECT_TRUE(broken(1, "pieces", pair(), [](Schedule& s) {
    s.transfers[0].from.first = static_cast<std::uint32_t>(s.pieces.size());
  }));
  EXPECT_TRUE(broken(1, "pieces", pair(), [](Schedule& s) { s.transfers[0].from.first = ~0U; }));
}

TEST(V1, MovesNothing) {
  EXPECT_TRUE(broken(1, "pieces", pair(),
                     [](Schedule& s) { s.transfers[0].from.count = s.transfers[0].to.count = 0; }));
}

TEST(V1, NamesABlockThatTheBufferLacks) {
  // Rank 1 owns block 1 of the all-gather's input, not block 0.
  EXPECT_TRUE(broken(1, "block 0 is not in the input of rank 1", allGather(2), [](Schedule& s) {
    firstPiece(s, s.transfers[1].from).block = 0;
    firstPiece(s, s.transfers[1].to).block = 0;
  }));
  // Only a root has an output.
  EXPECT_TRUE(broken(1, "block 1 is not in the output of rank 0", gather(2, 0), [](Schedule& s) {
    s.shape = makeShape(Collective::Gather, 2, {Group{{0, 1}, 1}});
  }));
}

TEST(V1, KeepsAccumulatorsInUserMemory) {
  EXPECT_TRUE(broken(1, "user memory holds elements only", pair(),
                     [](Schedule& s) { s.steps[0].to.width = Width::Accumulator; }));
}

TEST(V1, CountsSlotsForOtherRanks) {
  EXPECT_TRUE(
      broken(1, "slot counts for 3 ranks of 2", pair(), [](Schedule& s) { s.slots.push_back(0); }));
}

TEST(V1, HasPhasesThatSkipOrRepeatTransfers) {
  EXPECT_TRUE(
      broken(1, "one after another", relayed(), [](Schedule& s) { s.phases[1].firstTransfer--; }));
  EXPECT_TRUE(broken(1, "phases hold 5 transfers of 6", relayed(),
                     [](Schedule& s) { s.phases[1].transferCount--; }));
  EXPECT_TRUE(
      broken(1, "and 4 steps of 3", relayed(), [](Schedule& s) { s.phases[1].stepCount++; }));
}

TEST(V1, HasInputsOutsideTheirList) {
  EXPECT_TRUE(broken(1, "steps have 5 inputs of 4", pair(),
                     [](Schedule& s) { s.steps[1].inputCount = 3; }));
  EXPECT_TRUE(broken(1, "inputs one after another", pair(),
                     [](Schedule& s) { s.steps[1].firstInput = ~0U; }));
}

TEST(V1, HasInputsOfNoStepOrOfTwo) {
  EXPECT_TRUE(
      broken(1, "steps have 4 inputs of 5", pair(), [](Schedule& s) { s.inputs.emplace_back(); }));
  EXPECT_TRUE(broken(1, "inputs one after another", pair(),
                     [](Schedule& s) { s.steps[1].firstInput = 0; }));
}

TEST(V2, HasAGroupWithoutMembers) {
  EXPECT_TRUE(broken(2, "group 1 has no members", pair(),
                     [](Schedule& s) { s.shape.groups.emplace_back(); }));
}

TEST(V2, HasAMemberOutsideTheCommunicator) {
  EXPECT_TRUE(broken(2, "group 0 names rank 2 of 2", pair(),
                     [](Schedule& s) { s.shape.groups[0].ranks[1] = 2; }));
}

TEST(V2, HasARankInTwoPlaces) {
  EXPECT_TRUE(broken(2, "rank 0 is in more than one place", pair(),
                     [](Schedule& s) { s.shape.groups[0].ranks[1] = 0; }));
  EXPECT_TRUE(broken(2, "rank 3 is in more than one place", relayedPairs({{0, 1}, {2, 3}}, 4),
                     [](Schedule& s) { s.shape.groups[0].ranks[0] = 3; }));
}

TEST(V2, HasARootOutsideTheGroup) {
  EXPECT_TRUE(broken(2, "root 2 of 2", pair(), [](Schedule& s) { s.shape.groups[0].root = 2; }));
  EXPECT_TRUE(broken(2, "root -1 of 2", pair(), [](Schedule& s) { s.shape.groups[0].root = -1; }));
}

TEST(V2, HasOtherBlocks) {
  EXPECT_TRUE(broken(2, "2 blocks instead of 3", allGather(3),
                     [](Schedule& s) { s.shape.blocks.pop_back(); }));
  EXPECT_TRUE(broken(2, "block 0 is not the block of that number", allGather(3),
                     [](Schedule& s) { std::swap(s.shape.blocks[0], s.shape.blocks[2]); }));
}

TEST(V2, HasSharesThatDoNotMakeAWhole) {
  EXPECT_TRUE(broken(2, "sum to 4294967295", relayed(),
                     [](Schedule& s) { s.shape.blocks[0].shares[1]--; }));
  EXPECT_TRUE(broken(2, "sum to 0", pair(), [](Schedule& s) { s.shape.blocks[0].shares.clear(); }));
  // Which would be a whole in 64 bits.
  EXPECT_TRUE(broken(2, "sum to", relayed(), [](Schedule& s) {
    s.shape.blocks[0].shares = {~std::uint64_t{0}, kWhole + 1};
  }));
}

TEST(V2, HasMoreDirectSharesThanShares) {
  EXPECT_TRUE(broken(2, "3 direct shares of 2", relayed(),
                     [](Schedule& s) { s.shape.blocks[0].directShares = 3; }));
  EXPECT_TRUE(broken(2, "-1 direct shares of 2", relayed(),
                     [](Schedule& s) { s.shape.blocks[0].directShares = -1; }));
}

TEST(V3, SendsToItself) {
  EXPECT_TRUE(broken(3, "from rank 0 to itself", allGather(2),
                     [](Schedule& s) { s.transfers[0].to.rank = 0; }));
}

TEST(V3, ChangesTheWidthOnTheWay) {
  EXPECT_TRUE(broken(3, "transfer 6 changes its width", reduceScatterByPartials(),
                     [](Schedule& s) { s.transfers[6].to.width = Width::Element; }));
  EXPECT_TRUE(broken(3, "transfer 0 changes its width", pair(),
                     [](Schedule& s) { s.transfers[0].to.width = Width::Accumulator; }));
}

TEST(V3, ListsOtherSharesAtEachEnd) {
  EXPECT_TRUE(broken(3, "transfer 0 lists other pieces", relayed(),
                     [](Schedule& s) { firstPiece(s, s.transfers[0].to).share = 1; }));
}

TEST(V3, ListsSharesInAnotherOrder) {
  EXPECT_TRUE(broken(3, "transfer 2 lists other pieces", coalescedScatter(), [](Schedule& s) {
    const Ref& to = s.transfers[2].to;
    std::swap(s.pieces[to.first], s.pieces[to.first + 1]);
  }));
}

TEST(V3, ListsMoreAtOneEnd) {
  EXPECT_TRUE(broken(3, "transfer 2 lists other pieces", coalescedScatter(),
                     [](Schedule& s) { s.transfers[2].to.count--; }));
}

TEST(V5, ReadsAHelpersInput) {
  EXPECT_TRUE(broken(5, "helper 2 has no input", relayed(),
                     [](Schedule& s) { s.transfers[4].from.space = Space::Input; }));
}

TEST(V5, WritesAHelpersOutput) {
  EXPECT_TRUE(broken(5, "helper 2 has no output", relayed(),
                     [](Schedule& s) { s.steps[2].to.space = Space::Output; }));
  EXPECT_TRUE(broken(5, "helper 3 has no output", forwardedBroadcast(),
                     [](Schedule& s) { s.transfers[3].to.space = Space::Output; }));
}

TEST(V5, ReceivesIntoAnInput) {
  EXPECT_TRUE(broken(5, "transfer 0 writes the input of rank 1", allGather(2), [](Schedule& s) {
    // whose inputs hold every block
    s.shape = makeShape(Collective::ReduceScatter, 2, s.shape.groups);
    s.transfers[0].to.space = Space::Input;
  }));
}

TEST(V5, FoldsIntoAnInput) {
  EXPECT_TRUE(broken(5, "step 0 writes the input of rank 0", pair(),
                     [](Schedule& s) { s.steps[0].to.space = Space::Input; }));
}

TEST(V10, FoldsNothing) {
  EXPECT_TRUE(broken(10, "step 1 has 0 inputs", pair(), [](Schedule& s) {
    s.inputs.resize(2);  // those of the other step
    s.steps[1].inputCount = 0;
  }));
}

TEST(V10, CopiesTwoThings) {
  EXPECT_TRUE(broken(10, "step 0 has 2 inputs", pair(),
                     [](Schedule& s) { s.steps[0].kind = StepKind::Copy; }));
}

TEST(V10, ReadsAnotherRank) {
  EXPECT_TRUE(broken(10, "step 0 reads rank 1 on rank 0", pair(),
                     [](Schedule& s) { s.inputs[0].rank = 1; }));
}

TEST(V10, FoldsOtherShares) {
  EXPECT_TRUE(broken(10, "step 0 has an input of other pieces", relayed(),
                     [](Schedule& s) { firstPiece(s, s.inputs[0]).share = 1; }));
}

TEST(V10, CopiesBetweenWidths) {
  EXPECT_TRUE(
      broken(10, "step 0 copies between widths", reduceScatterByPartials(), [](Schedule& s) {
        s.steps[0].kind = StepKind::Copy;
        s.steps[0].inputCount = 1;
        s.inputs.erase(s.inputs.begin() + 1);
        for (std::size_t i = 1; i < s.steps.size(); ++i) s.steps[i].firstInput--;
      }));
}

TEST(V10, IsSkippedInPlaceWhereItMayNot) {
  EXPECT_TRUE(broken(10, "step 0 may not be skipped in place", pair(),
                     [](Schedule& s) { s.steps[0].skipWhenAliased = true; }));
  EXPECT_TRUE(broken(10, "step 0 may not be skipped in place", gather(2, 1),
                     [](Schedule& s) { s.inputs[0].space = Space::Output; }));
}

TEST(V10, WidensASlotInPlace) {
  EXPECT_TRUE(broken(10, "step 0 widens slot 0 in place", reduceScatterByPartials(),
                     [](Schedule& s) { firstPiece(s, s.steps[0].to).slot = 0; }));
}

// Pieces of a step are computed in any order, so none may lie where another does.
Schedule twoPieceCopy(const std::vector<Piece>& to, const std::vector<Piece>& from) {
  Hand h(cutEvenly(makeShape(Collective::Broadcast, 2, {Group{{0, 1}, 0}}), 2));
  for (int i = 0; i < 4; ++i) h.newSlot(1);
  h.beginPhase();
  const std::vector<Piece> both{Hand::piece(0, 0), Hand::piece(0, 1)};
  h.transfer(h.ref(Space::Input, 0, both), h.ref(Space::Stage, 1, from));
  h.keepOwn(0, 0, 0);
  h.keepOwn(0, 0, 1);
  h.copy(h.ref(Space::Stage, 1, to), h.ref(Space::Stage, 1, from), false);
  h.copy(h.ref(Space::Output, 1, both), h.ref(Space::Stage, 1, to), false);
  return std::move(h).finish();
}

TEST(V10, WritesAPieceOverAnothersInput) {
  const auto at = [](std::uint32_t first, std::uint32_t second) {
    return std::vector{Hand::piece(0, 0, first), Hand::piece(0, 1, second)};
  };
  EXPECT_TRUE(accepted(twoPieceCopy(at(2, 3), at(0, 1))));
  EXPECT_TRUE(accepted(twoPieceCopy(at(0, 1), at(0, 1))));
  const char* text = "step 2 has two pieces in one place";
  EXPECT_TRUE(refusedBy(10, text, twoPieceCopy(at(1, 2), at(0, 1))));
  EXPECT_TRUE(refusedBy(10, text, twoPieceCopy(at(1, 0), at(0, 1))));
  EXPECT_TRUE(refusedBy(10, text, twoPieceCopy(at(3, 0), at(0, 1))));
}

TEST(V10, WritesAPlaceTwice) {
  EXPECT_TRUE(broken(10, "step 0 has two pieces in one place", pair(), [](Schedule& s) {
    const auto twice = [&](Ref& ref) {
      const Piece piece = s.pieces[ref.first];
      ref.first = static_cast<std::uint32_t>(s.pieces.size());
      ref.count = 2;
      s.pieces.insert(s.pieces.end(), {piece, piece});
    };
    twice(s.steps[0].to);
    twice(s.inputs[0]);
    twice(s.inputs[1]);
  }));
}

}  // namespace
}  // namespace byway
