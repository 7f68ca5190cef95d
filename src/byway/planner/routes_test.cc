// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/routes.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "byway/base/error.h"
#include "byway/schedule/loads.h"
#include "byway/schedule/verify.h"

namespace byway {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Slice move(int block, std::uint64_t units, std::vector<Hop> out, bool direct = false) {
  Slice slice;
  slice.block = block;
  slice.units = units;
  slice.direct = direct;
  slice.out = std::move(out);
  return slice;
}

Slice sumAt(int at, int block, std::vector<InHop> in, std::vector<Hop> out) {
  Slice slice;
  slice.kind = SliceKind::SumAt;
  slice.block = block;
  slice.at = at;
  slice.in = std::move(in);
  slice.out = std::move(out);
  return slice;
}

// Every contributor straight to `to` in stage 0.
std::vector<InHop> straight(const std::vector<int>& contributors, int to) {
  std::vector<InHop> hops;
  for (const int r : contributors) {
    if (r != to) hops.push_back({r, {r, to, 0}});
  }
  return hops;
}

Shape shapeOf(Collective collective, int ranks, std::vector<int> members, int root = 0) {
  return makeShape(collective, ranks, {{std::move(members), root}});
}

Schedule expectRight(Schedule schedule) {
  for (const Violation& v : violations(schedule)) {
    ADD_FAILURE() << "V" << v.rule << ": " << v.what << "\n" << toText(schedule);
  }
  return schedule;
}

TEST(Routes, SharesByLargestRemainderWithDirectSlicesFirst) {
  const Schedule s =
      expectRight(emit(shapeOf(Collective::Broadcast, 3, {0, 1}),
                       {move(0, 1, {{0, 2, 0}, {2, 1, 1}}), move(0, 1, {{0, 1, 0}}, true),
                        move(0, 1, {{0, 1, 1}}, true)},
                       {"three"}));
  EXPECT_THAT(s.shape.blocks[0].shares, ElementsAre(1431655766, 1431655765, 1431655765));
  EXPECT_EQ(s.shape.blocks[0].directShares, 2);
  EXPECT_EQ(s.name, "three");
}

TEST(Routes, SlicesOfNothingAreDropped) {
  const Schedule s =
      expectRight(emit(shapeOf(Collective::Broadcast, 3, {0, 1}),
                       {move(0, 0, {{0, 2, 0}, {2, 1, 1}}), move(0, 5, {{0, 1, 0}}, true)}, {}));
  EXPECT_THAT(s.shape.blocks[0].shares, ElementsAre(kWhole));
  EXPECT_EQ(s.transfers.size(), 1U);
}

TEST(Routes, NoGroupsMakeAnEmptySchedule) {
  for (const Collective collective : {Collective::AllReduce, Collective::AllGather}) {
    EXPECT_TRUE(expectRight(emit(makeShape(collective, 4, {}), {}, {})).phases.empty());
  }
}

TEST(Routes, GroupsOfOneCopyOrFinishTheirOwn) {
  for (int c = 0; c <= static_cast<int>(Collective::Gather); ++c) {
    const auto collective = static_cast<Collective>(c);
    const Schedule s = expectRight(emit(makeShape(collective, 4, {{{2}, 0}, {{0}, 0}}), {}, {}));
    ASSERT_EQ(s.steps.size(), 2U);
    EXPECT_EQ(s.steps[0].kind, reduces(collective) ? StepKind::Reduce : StepKind::Copy);
    EXPECT_EQ(s.steps[0].skipWhenAliased,
              !reduces(collective) && collective != Collective::AllToAll);
  }
}

// Each share is copied when its own last send is over, not with the whole block at the end.
TEST(Routes, OwnBlocksAreCopiedShareByShare) {
  const Schedule s =
      expectRight(emit(shapeOf(Collective::Broadcast, 2, {0, 1}),
                       {move(0, 1, {{0, 1, 0}}, true), move(0, 1, {{0, 1, 1}}, true)}, {}));
  EXPECT_EQ(s.phases[0].stepCount, 1U);
  EXPECT_EQ(s.phases[1].stepCount, 1U);
}

TEST(Routes, PathsAndTreesOfAnyDepth) {
  expectRight(emit(shapeOf(Collective::Broadcast, 6, {0, 1, 2}),
                   {move(0, 3, {{0, 3, 0}, {3, 4, 1}, {4, 1, 2}, {1, 5, 4}, {5, 2, 6}}),
                    move(0, 2, {{0, 4, 0}, {4, 2, 1}, {4, 1, 2}})},
                   {}));
  expectRight(emit(shapeOf(Collective::Gather, 4, {0, 1}, 1),
                   {move(0, 1, {{0, 3, 2}, {3, 2, 3}, {2, 1, 9}})}, {}));
}

TEST(Routes, WhatGoesBetweenTwoSpacesInAPhaseIsOneMessage) {
  const Schedule s =
      expectRight(emit(shapeOf(Collective::AllToAll, 3, {0, 1}),
                       {move(1, 1, {{0, 2, 0}, {2, 1, 1}}), move(1, 1, {{0, 2, 0}, {2, 1, 1}}),
                        move(1, 1, {{0, 1, 0}}, true), move(2, 1, {{1, 0, 0}}, true)},
                       {}));
  ASSERT_EQ(s.transfers.size(), 4U);
  EXPECT_EQ(s.phases[0].transferCount, 3U);
  EXPECT_EQ(s.piecesOf(s.transfers[3].from).size(), 2U);
}

TEST(Routes, AllReduceSumsAtAHelperInPlace) {
  const Schedule s = expectRight(
      emit(shapeOf(Collective::AllReduce, 4, {2, 0, 1}),
           {sumAt(3, 0, straight({0, 1, 2}, 3), {{3, 0, 1}, {3, 1, 1}, {1, 2, 2}})}, {}));
  EXPECT_EQ(s.slots[3], 3U);
  EXPECT_EQ(s.piecesOf(s.steps[0].to)[0].slot, s.piecesOf(s.inputsOf(s.steps[0])[0])[0].slot);
  EXPECT_EQ(s.steps[0].divisor, 3U);
}

TEST(Routes, AllReduceSumsAtAMemberAndReachesOthersThroughAHelper) {
  expectRight(emit(shapeOf(Collective::AllReduce, 4, {2, 0, 1}),
                   {sumAt(0, 0, straight({1, 2}, 0), {{0, 3, 1}, {3, 1, 2}, {3, 2, 2}})}, {}));
}

// Two contributions share a forwarding rank; they come in different phases.
TEST(Routes, ContributionsMayBeForwarded) {
  expectRight(emit(
      shapeOf(Collective::AllReduce, 5, {0, 1, 2}),
      {sumAt(4, 0, {{0, {0, 3, 0}}, {1, {1, 3, 0}}, {0, {3, 4, 1}}, {1, {3, 4, 2}}, {2, {2, 4, 0}}},
             {{4, 0, 3}, {4, 1, 3}, {4, 2, 3}})},
      {}));
}

TEST(Routes, PartialsTravelWideAndTheOwnerComesLast) {
  for (const int at : {1, 3}) {  // another member, a helper
    const Schedule s =
        expectRight(emit(shapeOf(Collective::Reduce, 5, {0, 1, 2}, 0),
                         {sumAt(at, 0, straight({1, 2}, at), {{at, 4, 1}, {4, 0, 2}})}, {}));
    EXPECT_EQ(s.transfers.back().to.width, Width::Accumulator);
    EXPECT_EQ(s.steps.size(), 2U);
    EXPECT_NEAR(loadsOf(s, std::vector<double>{1.0}, 2).sumOfMax(), 1 + 2 + 2, 1e-9);
  }
}

TEST(Routes, OneContributionIsPassedOnRaw) {
  const Schedule s = expectRight(
      emit(shapeOf(Collective::Reduce, 3, {0, 1}, 0),
           {sumAt(2, 0, straight({1}, 2), {{2, 0, 1}}), sumAt(1, 0, {}, {{1, 0, 0}})}, {}));
  for (const Transfer& t : s.transfers) EXPECT_EQ(t.to.width, Width::Element);
  EXPECT_EQ(s.steps.size(), 2U);
}

TEST(Routes, LargeGroupsFoldInBlocksOfSixteenWhereverTheySum) {
  for (const int size : {17, 18, 40}) {
    std::vector<int> members(static_cast<std::size_t>(size));
    std::iota(members.rbegin(), members.rend(), 1);
    std::vector<Hop> out;
    for (const int r : members) out.push_back({0, r, 1});
    expectRight(emit(shapeOf(Collective::AllReduce, size + 1, members),
                     {sumAt(0, 0, straight(members, 0), out)}, {}));
    for (const int root : {0, 16}) {
      const int owner = members[static_cast<std::size_t>(root)];
      std::vector<int> others = members;
      others.erase(std::find(others.begin(), others.end(), owner));
      expectRight(emit(shapeOf(Collective::Reduce, size + 1, members, root),
                       {sumAt(0, 0, straight(others, 0), {{0, owner, 1}})}, {}));
      expectRight(emit(shapeOf(Collective::Reduce, size + 1, members, root),
                       {sumAt(others[3], 0, straight(others, others[3]), {{others[3], owner, 1}})},
                       {}));
    }
  }
}

// The fourth slice of a lane takes the first one's slot again, unless it is still to be read.
TEST(Routes, LanesTakeTurnsInTheirRing) {
  const auto slots = [](int ring, int delay) {
    std::vector<Slice> slices;
    for (int k = 0; k < 8; ++k) {
      slices.push_back(move(0, 1, {{0, 2, k}, {2, 1, k + delay}}));
    }
    return expectRight(emit(shapeOf(Collective::Broadcast, 3, {0, 1}), slices, {"", ring}))
        .slots[2];
  };
  EXPECT_EQ(slots(3, 1), 3U);
  EXPECT_EQ(slots(2, 1), 2U);
  EXPECT_EQ(slots(3, 4), 5U);
}

// One contribution comes five phases before the other and must not be overwritten meanwhile.
TEST(Routes, EarlyContributionsKeepTheirSlots) {
  std::vector<Slice> slices;
  for (int k = 0; k < 8; ++k) {
    slices.push_back(
        sumAt(2, 0, {{0, {0, 2, k + 5}}, {1, {1, 2, k}}}, {{2, 0, k + 6}, {2, 1, k + 6}}));
  }
  expectRight(emit(shapeOf(Collective::AllReduce, 3, {0, 1}), slices, {}));
}

std::string whyImpossible(const Shape& shape, const Slice& slice) {
  try {
    emit(shape, {slice}, {"bad"});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Internal);
    return error.what();
  }
  return "possible";
}

TEST(Routes, ImpossibleRoutesAreRefused) {
  const Shape broadcast = shapeOf(Collective::Broadcast, 4, {0, 1});
  const Shape reduce = shapeOf(Collective::Reduce, 4, {0, 1, 2});
  const char* early = "sends what is not there yet";
  EXPECT_THAT(whyImpossible(broadcast, move(0, 1, {{2, 1, 0}})), HasSubstr(early));
  EXPECT_THAT(whyImpossible(broadcast, move(0, 1, {{0, 2, 1}, {2, 1, 1}})), HasSubstr(early));
  EXPECT_THAT(whyImpossible(broadcast, move(0, 1, {{0, 1, 0}, {0, 1, 1}})), HasSubstr("twice"));
  EXPECT_THAT(whyImpossible(broadcast, sumAt(2, 0, {}, {})), HasSubstr("a collective that moves"));
  EXPECT_THAT(whyImpossible(reduce, move(0, 1, {{0, 1, 0}})), HasSubstr("a collective that sums"));
  EXPECT_THAT(whyImpossible(reduce, sumAt(0, 0, straight({1}, 0), {})), HasSubstr("are missing"));
  EXPECT_THAT(whyImpossible(reduce, sumAt(3, 0, straight({1, 2}, 3), {})), HasSubstr("its owner"));
  EXPECT_THAT(whyImpossible(reduce, sumAt(3, 0, straight({1, 2}, 3), {{3, 0, 0}})),
              HasSubstr(early));
  EXPECT_THAT(whyImpossible(reduce, sumAt(0, 0, straight({1, 3}, 0), {})), HasSubstr("no member"));
  EXPECT_THAT(whyImpossible(broadcast, move(7, 1, {})), HasSubstr("block"));
}

}  // namespace
}  // namespace byway
