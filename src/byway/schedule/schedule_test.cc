// SPDX-License-Identifier: BSD-3-Clause
#include "byway/schedule/schedule.h"

#include <functional>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "byway/base/error.h"
#include "byway/schedule/schedule_test_util.h"

namespace byway {
namespace {

using testing::HasSubstr;
using testing_util::forwardedBroadcast;
using testing_util::Hand;
using testing_util::handWritten;
using testing_util::reduceScatterByPartials;
using testing_util::relayedPairs;

struct Change {
  const char* what;
  std::function<void(Schedule&)> make;
};

// One for each kind of field.
const std::vector<Change> kChanges{
    {"collective", [](Schedule& s) { s.shape.collective = Collective::Reduce; }},
    {"ranks", [](Schedule& s) { s.shape.ranks++; }},
    {"groups", [](Schedule& s) { s.shape.groups.push_back({}); }},
    {"group's ranks",
     [](Schedule& s) { std::swap(s.shape.groups[0].ranks[0], s.shape.groups[0].ranks[1]); }},
    {"group's size", [](Schedule& s) { s.shape.groups[0].ranks.pop_back(); }},
    {"root", [](Schedule& s) { s.shape.groups[0].root = 1; }},
    {"blocks", [](Schedule& s) { s.shape.blocks.emplace_back(); }},
    {"block's group", [](Schedule& s) { s.shape.blocks[0].group = 1; }},
    {"source", [](Schedule& s) { s.shape.blocks[0].source = 1; }},
    {"destination", [](Schedule& s) { s.shape.blocks[0].destination = 1; }},
    {"share", [](Schedule& s) { s.shape.blocks[0].shares[0]--; }},
    {"shares", [](Schedule& s) { s.shape.blocks[0].shares.push_back(0); }},
    {"direct shares", [](Schedule& s) { s.shape.blocks[0].directShares = 0; }},
    {"phases",
     [](Schedule& s) {
       s.phases.push_back({6, 0, 3, 0});
     }},
    {"transfer count", [](Schedule& s) { s.phases[0].transferCount--; }},
    {"step count", [](Schedule& s) { s.phases[0].stepCount--; }},
    {"transfers", [](Schedule& s) { s.transfers.pop_back(); }},
    {"transfer's ends", [](Schedule& s) { std::swap(s.transfers[0].from, s.transfers[0].to); }},
    {"space", [](Schedule& s) { s.transfers[0].from.space = Space::Output; }},
    {"width", [](Schedule& s) { s.transfers[0].to.width = Width::Accumulator; }},
    {"rank", [](Schedule& s) { s.transfers[0].from.rank++; }},
    {"count", [](Schedule& s) { s.transfers[0].from.count = 0; }},
    {"piece's block", [](Schedule& s) { s.pieces[0].block++; }},
    {"piece's share", [](Schedule& s) { s.pieces[0].share++; }},
    {"piece's slot", [](Schedule& s) { s.pieces[0].slot++; }},
    {"step kind", [](Schedule& s) { s.steps[0].kind = StepKind::Copy; }},
    {"skip", [](Schedule& s) { s.steps[0].skipWhenAliased = true; }},
    {"divisor", [](Schedule& s) { s.steps[0].divisor++; }},
    {"step's place", [](Schedule& s) { s.steps[0].to = s.steps[1].to; }},
    {"input count", [](Schedule& s) { s.steps[0].inputCount--; }},
    {"order of inputs", [](Schedule& s) { std::swap(s.inputs[0], s.inputs[1]); }},
    {"slots", [](Schedule& s) { s.slots[2]++; }},
};

TEST(ScheduleHash, SeesEveryField) {
  const Schedule base = relayedPairs({{0, 1}}, 3);
  std::set<std::uint64_t> seen{hashOf(base)};
  for (const Change& change : kChanges) {
    Schedule other = base;
    change.make(other);
    EXPECT_NE(other, base) << change.what;
    EXPECT_TRUE(seen.insert(hashOf(other)).second) << change.what;
  }
}

TEST(ScheduleHash, IsOfWhatIsSaidNotOfHowItLies) {
  Schedule base = relayedPairs({{0, 1}}, 3);
  EXPECT_EQ(hashOf(relayedPairs({{0, 1}}, 3)), hashOf(base));
  Schedule other = base;
  other.name = "another";
  EXPECT_NE(other, base);
  EXPECT_EQ(hashOf(other), hashOf(base));
  // The same pieces once more at the end of the list.
  Ref& ref = other.transfers[1].to;
  const auto pieces = other.piecesOf(ref);
  const std::vector<Piece> copy(pieces.begin(), pieces.end());
  ref.first = static_cast<std::uint32_t>(other.pieces.size());
  other.pieces.insert(other.pieces.end(), copy.begin(), copy.end());
  EXPECT_EQ(hashOf(other), hashOf(base));
}

TEST(ScheduleHash, TellsSchedulesApart) {
  std::set<std::uint64_t> seen;
  for (const Schedule& s : handWritten()) EXPECT_TRUE(seen.insert(hashOf(s)).second) << s.name;
}

// All ranks compare it, so it may depend on nothing but the schedule.
TEST(ScheduleHash, IsTheSameOnEveryMachine) {
  const Schedule s = relayedPairs({{0, 1}}, 3);
  EXPECT_EQ(hashOf(s), 4687188906995944495u)
      << "a change of the form must be meant: raise its version in hashOf";
}

TEST(ScheduleText, ShowsPhasesTransfersAndSteps) {
  const std::string text = toText(reduceScatterByPartials());
  EXPECT_THAT(text, HasSubstr("schedule \"partials\": reduce-scatter among 4 ranks, hash "));
  EXPECT_THAT(text, HasSubstr("group 0: ranks 0 1 2\n"));
  EXPECT_THAT(text, HasSubstr("phase 0\n  1:input[b0.0] -> 3:stage[b0.0@0]\n"));
  EXPECT_THAT(text, HasSubstr("  3:stage(acc)[b0.0@6] = reduce 3:stage[b0.0@0] 3:stage[b0.0@1]\n"));
  EXPECT_THAT(text, HasSubstr("phase 1\n  3:stage(acc)[b0.0@6] -> 0:stage(acc)[b0.0@0]\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "  0:output[b0.0] = reduce 0:stage(acc)[b0.0@0] 0:input[b0.0] (AVG divides by 3)\n"));
}

TEST(ScheduleText, ShowsRootsCopiesAndLists) {
  EXPECT_THAT(toText(forwardedBroadcast()), HasSubstr("group 0: ranks 2 0 1, root 0\n"));
  const std::string text = toText(testing_util::coalescedScatter());
  EXPECT_THAT(text, HasSubstr("  2:input[b0.1 b2.1] -> 0:stage[b0.1@0 b2.1@1]\n"));
  EXPECT_THAT(text, HasSubstr("  2:output[b1.0] = copy 2:input[b1.0] unless in place\n"));
}

TEST(ScheduleText, HasALineForEverything) {
  for (const Schedule& s : handWritten()) {
    const std::string text = toText(s);
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    EXPECT_EQ(lines,
              1 + s.shape.groups.size() + s.phases.size() + s.transfers.size() + s.steps.size())
        << text;
  }
}

TEST(ScheduleBuilder, PutsTransfersBeforeSteps) {
  Hand h(makeShape(Collective::Broadcast, 2, {Group{{0, 1}, 0}}));
  EXPECT_THROW(h.transfer(h.in(0), h.out(1)), Error) << "before the first phase";
  EXPECT_THROW(h.keepOwn(0), Error) << "before the first phase";
  h.beginPhase();
  h.keepOwn(0);
  EXPECT_THROW(h.transfer(h.in(0), h.out(1)), Error) << "after a step";
}

TEST(ScheduleBuilder, GivesSlotsToStagePiecesOnly) {
  Hand h(makeShape(Collective::Broadcast, 2, {Group{{0, 1}, 0}}));
  h.newSlot(1);
  const Ref in = h.ref(Space::Input, 0, Piece{0, 0, 7});
  const Ref stage = h.ref(Space::Stage, 1, Piece{0, 0, h.newSlot(1)});
  const Schedule s = std::move(h).finish();
  EXPECT_EQ(s.piecesOf(in)[0].slot, 0u);
  EXPECT_EQ(s.piecesOf(stage)[0].slot, 1u);
  EXPECT_EQ(s.slots, (std::vector<std::uint32_t>{0, 2}));
}

}  // namespace
}  // namespace byway
