// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/predict.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "byway/planner/routes.h"

namespace byway {
namespace {

// Builds schedules by hand; they need not be right collectives, predict() does not ask.
class Hand {
 public:
  explicit Hand(int ranks, std::vector<std::uint64_t> shares = {kWhole}) {
    Shape shape = makeShape(Collective::AllReduce, ranks, {{{0, 1}, 0}});
    shape.blocks[0].shares = std::move(shares);
    builder_.emplace(std::move(shape));
  }
  void phase() { builder_->beginPhase(); }
  Ref stage(int rank, std::uint32_t slot, std::uint32_t share = 0, Width width = Width::Element) {
    while (slots_[rank] <= slot) slots_[rank]++, builder_->newSlot(rank);
    return builder_->ref(Space::Stage, rank, Piece{0, share, slot}, width);
  }
  void move(const Ref& from, const Ref& to) { builder_->transfer(from, to); }
  ScheduleBuilder& builder() { return *builder_; }

  Seconds time(const Topology& topology, double bytes, double partialWeight = 1) && {
    const auto schedule = std::move(*builder_).finish();
    return predict(schedule, dependencesOf(schedule), topology, std::vector<double>{bytes},
                   partialWeight);
  }

 private:
  std::optional<ScheduleBuilder> builder_;
  std::map<int, std::uint32_t> slots_;
};

constexpr std::uint64_t kHalf = kWhole / 2;

TEST(Predict, OneMessageTakesLatencyAndBytes) {
  Hand hand(2);
  hand.phase();
  hand.move(hand.stage(0, 0), hand.stage(1, 0));
  EXPECT_DOUBLE_EQ(std::move(hand).time(meshTopology(2, 100, 0.25), 50), 0.25 + 0.5);
}

TEST(Predict, ALinkServesOneAtATime) {
  Hand hand(2, {kHalf, kHalf});
  hand.phase();
  for (std::uint32_t s = 0; s < 2; ++s) hand.move(hand.stage(0, s, s), hand.stage(1, s, s));
  EXPECT_DOUBLE_EQ(std::move(hand).time(meshTopology(2, 100, 0.25), 50), 0.25 + 0.5);
}

TEST(Predict, DirectionsAndPairsDoNotShareLinks) {
  Hand hand(3);
  hand.phase();
  hand.move(hand.stage(0, 0), hand.stage(1, 0));
  hand.move(hand.stage(1, 1), hand.stage(0, 1));
  hand.move(hand.stage(0, 0), hand.stage(2, 0));
  EXPECT_DOUBLE_EQ(std::move(hand).time(meshTopology(3, 100), 50), 0.5);
}

TEST(Predict, AChainPaysLatencyPerHop) {
  Hand hand(4);
  for (int r = 0; r < 3; ++r) {
    hand.phase();
    hand.move(hand.stage(r, 0), hand.stage(r + 1, 0));
  }
  EXPECT_DOUBLE_EQ(std::move(hand).time(meshTopology(4, 100, 0.25), 100), 3 * 1.25);
}

// The second message needs the slot that the first is read from, so it is posted late; its latency
// has passed by then.
TEST(Predict, AReceiveWaitsForItsSlot) {
  Hand hand(3, {kHalf, kHalf});
  hand.phase();
  hand.move(hand.stage(0, 0, 0), hand.stage(1, 0, 0));
  hand.phase();
  hand.move(hand.stage(1, 0, 0), hand.stage(2, 0, 0));
  hand.phase();
  hand.move(hand.stage(0, 1, 1), hand.stage(1, 0, 1));
  hand.phase();
  hand.move(hand.stage(1, 0, 1), hand.stage(2, 1, 1));
  // 0.25 + 0.5 | + 0.25 + 0.5 = 1.5 | + 0.5 = 2.0 | + 0.25 + 0.5
  EXPECT_DOUBLE_EQ(std::move(hand).time(meshTopology(3, 100, 0.25), 100), 2.75);
}

// The second message of a link could be received at once, but the first is posted only when its
// slot is free: the executor posts receives of one rank in the order of the schedule.
TEST(Predict, AReceiveWaitsForTheOneBeforeIt) {
  Hand hand(3, {kHalf, kHalf});
  hand.phase();
  hand.move(hand.stage(2, 0, 0), hand.stage(1, 0, 0));  // 0 to 0.5
  hand.phase();
  hand.move(hand.stage(1, 0, 0), hand.stage(2, 1, 0));  // 0.5 to 1
  hand.phase();
  hand.move(hand.stage(0, 0, 1), hand.stage(1, 0, 1));  // into the slot that is read until 1
  hand.move(hand.stage(0, 1, 0), hand.stage(1, 1, 0));  // a slot of its own, but after that
  EXPECT_DOUBLE_EQ(std::move(hand).time(meshTopology(3, 128), 128), 2);
  Hand other(3, {kHalf, kHalf});
  other.phase();
  other.move(other.stage(2, 0, 0), other.stage(1, 0, 0));
  other.phase();
  other.move(other.stage(1, 0, 0), other.stage(2, 1, 0));
  other.phase();
  other.move(other.stage(0, 1, 0), other.stage(1, 1, 0));  // first now: 0 to 0.5
  other.move(other.stage(0, 0, 1), other.stage(1, 0, 1));
  EXPECT_DOUBLE_EQ(std::move(other).time(meshTopology(3, 128), 128), 1.5);
}

TEST(Predict, StepsTakeTheirInputsOneAfterAnother) {
  Hand hand(2);
  hand.phase();
  const Ref inputs[] = {hand.stage(0, 0), hand.stage(0, 1)};
  hand.builder().reduce(hand.stage(0, 2), inputs, 1);
  hand.builder().reduce(hand.stage(0, 3), inputs, 1);
  auto topology = meshTopology(2, 100);
  topology.reduce = 400;
  EXPECT_DOUBLE_EQ(std::move(hand).time(topology, 100), 2 * 200.0 / 400);
}

TEST(Predict, PartialSumsWeighMore) {
  Hand hand(2);
  hand.phase();
  hand.move(hand.stage(0, 0, 0, Width::Accumulator), hand.stage(1, 0, 0, Width::Accumulator));
  EXPECT_DOUBLE_EQ(std::move(hand).time(meshTopology(2, 100), 100, 2), 2.0);
}

TEST(Predict, MessagesCostTheirRanksTime) {
  Hand hand(4);
  hand.phase();
  for (int to = 1; to < 4; ++to) hand.move(hand.stage(0, 0), hand.stage(to, 0));
  // The third send is posted after three messages' time, its receive long before.
  EXPECT_DOUBLE_EQ(std::move(hand).time(meshTopology(4, 100, 0.25, 0.125), 100),
                   3 * 0.125 + 0.25 + 1);
}

TEST(Predict, PortsAndBusBoundFromBelow) {
  const auto exchange = [](const Topology& topology) {
    Hand hand(4);
    hand.phase();
    for (int to = 1; to < 4; ++to) hand.move(hand.stage(0, 0), hand.stage(to, 0));
    return std::move(hand).time(topology, 100);
  };
  EXPECT_DOUBLE_EQ(exchange(meshTopology(4, 100)), 1);
  EXPECT_DOUBLE_EQ(exchange(switchTopology(4, 100)), 3);
  auto topology = meshTopology(4, 100);
  topology.ingress[2] = 50;
  EXPECT_DOUBLE_EQ(exchange(topology), 2);
  topology.bus = 75;
  EXPECT_DOUBLE_EQ(exchange(topology), 4);
}

TEST(Predict, AMissingLinkTakesForever) {
  Hand hand(2);
  hand.phase();
  hand.move(hand.stage(0, 0), hand.stage(1, 0));
  auto topology = meshTopology(2, 100);
  topology.links[1] = 0;
  EXPECT_EQ(std::move(hand).time(topology, 0), kNever);
}

TEST(Predict, NothingTakesNoTime) {
  Hand hand(2);
  EXPECT_EQ(std::move(hand).time(meshTopology(2, 100, 1), 100), 0);
}

// schedules.md S1, K = 2, a pair and one helper: the direct chunks 0 and 1 go one after another,
// the helper's chunk goes up beside the first and down beside the second.
TEST(Predict, RelayOfAPairInTwoStages) {
  constexpr int kA = 0, kB = 1, kHelper = 2;
  const double third = 1.0 / 3;
  constexpr double kBytes = 3 * 64 * 30;  // thirds are whole units
  const Shape shape = makeShape(Collective::AllGather, 3, {{{kA, kB}, 0}});
  std::vector<Slice> slices;
  for (const int source : {kA, kB}) {
    const int block = blockInGroup(Collective::AllGather, 2, source, -1);
    for (int stage = 0; stage < 2; ++stage) {
      slices.push_back({SliceKind::Move, block, 1, true, 0, -1, {}, {{source, 1 - source, stage}}});
    }
    slices.push_back({SliceKind::Move,
                      block,
                      1,
                      false,
                      1,
                      -1,
                      {},
                      {{source, kHelper, 0}, {kHelper, 1 - source, 1}}});
  }
  const auto schedule = emit(shape, slices, {"S1"});
  const auto time = [&](const Topology& topology) {
    return predict(schedule, dependencesOf(schedule), topology, std::vector<double>{kBytes, kBytes},
                   1);
  };
  EXPECT_NEAR(time(meshTopology(3, kBytes)), 2 * third, 1e-8);
  EXPECT_NEAR(time(meshTopology(3, kBytes, 0.25)), 2 * (third + 0.25), 1e-8);
}

// Equal on paper is equal in bits: who is called what does not enter.
TEST(Predict, RenamingRanksChangesNothing) {
  const auto time = [](const std::vector<int>& names) {
    const Shape shape = makeShape(Collective::AllReduce, 4, {{{names[0], names[1], names[2]}, 0}});
    Slice slice{SliceKind::SumEverywhere, 0, 1, true, 0, -1, {}, {}};
    for (int from = 0; from < 3; ++from) {
      for (int to = 0; to < 3; ++to) {
        if (from != to) slice.in.push_back({names[from], {names[from], names[to], 0}});
      }
    }
    const auto schedule = emit(shape, {slice}, {"exchange"});
    return predict(schedule, dependencesOf(schedule), meshTopology(4, 7e9, 3e-6, 1e-7),
                   std::vector<double>{1e6}, 1);
  };
  const auto base = time({0, 1, 2});
  EXPECT_NEAR(base, 1e6 / 7e9 + 3e-6 + 2e-7, 1e-6);
  EXPECT_EQ(time({3, 0, 2}), base);
  EXPECT_EQ(time({2, 1, 3}), base);
}

// Blocks too small for their shares go the direct way, and what is left out costs nothing.
TEST(Predict, SharesOfNoBytesTakeNoTime) {
  const Shape shape = makeShape(Collective::AllGather, 3, {{{0, 1}, 0}});
  std::vector<Slice> slices;
  for (const int source : {0, 1}) {
    slices.push_back({SliceKind::Move, source, 1, true, 0, -1, {}, {{source, 1 - source, 0}}});
    slices.push_back(
        {SliceKind::Move, source, 1, false, 1, -1, {}, {{source, 2, 0}, {2, 1 - source, 1}}});
  }
  const auto schedule = emit(shape, slices, {"two ways"});
  const auto time = [&](double bytes) {
    return predict(schedule, dependencesOf(schedule), meshTopology(3, 64, 0.5),
                   std::vector<double>{bytes, bytes}, 1);
  };
  EXPECT_NEAR(time(64), 0.5 + 1, 1e-12);         // one unit: direct alone
  EXPECT_NEAR(time(128), 2 * (0.5 + 1), 1e-12);  // one unit each way
}

}  // namespace
}  // namespace byway
