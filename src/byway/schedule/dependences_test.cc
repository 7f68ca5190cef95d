// SPDX-License-Identifier: BSD-3-Clause
#include "byway/schedule/dependences.h"

#include <algorithm>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "byway/schedule/random_order_test_util.h"
#include "byway/schedule/schedule_test_util.h"

namespace byway {
namespace {

using testing::ElementsAre;
using namespace testing_util;  // NOLINT(google-build-using-namespace): the hand-written schedules

// Transfers: 0 from 1 to 0, 1 from 0 to 1, 2 and 3 up to the helper, 4 and 5 down from it.
// Steps: 0 and 1 fold the exchanged share, 2 sums at the helper.
TEST(Dependences, OfARelayedPair) {
  const Schedule s = relayedPairs({{0, 1}}, 3);
  EXPECT_THAT(
      dependencesOf(s).edges,
      ElementsAre(
          Dependence{stepOp(s, 2), sendOp(4)}, Dependence{sendOp(2), recvOp(4)},     // in place
          Dependence{stepOp(s, 2), sendOp(5)}, Dependence{sendOp(3), recvOp(5)},     // in place
          Dependence{recvOp(0), stepOp(s, 0)}, Dependence{sendOp(1), stepOp(s, 0)},  // in place
          Dependence{sendOp(0), stepOp(s, 1)},                                       // in place
          Dependence{recvOp(1), stepOp(s, 1)}, Dependence{recvOp(2), stepOp(s, 2)},
          Dependence{recvOp(3), stepOp(s, 2)}));
}

TEST(Dependences, OfAReusedSlot) {
  const Schedule s = slotReuse(2);
  // Rank 0's copies of its own share to Output wait for nothing: in place they do nothing, and
  // apart the sends read other memory.
  EXPECT_THAT(dependencesOf(s).edges,
              ElementsAre(Dependence{recvOp(0), sendOp(1)},  // forwarded when it has arrived
                          Dependence{recvOp(0), recvOp(2)},  // the slot again
                          Dependence{sendOp(1), recvOp(2)},  // when it was read
                          Dependence{recvOp(2), sendOp(3)}));
  EXPECT_THAT(dependencesOf(s, /*withWriteAfterRead=*/false).edges,
              ElementsAre(Dependence{recvOp(0), sendOp(1)}, Dependence{recvOp(0), recvOp(2)},
                          Dependence{recvOp(2), sendOp(3)}));
}

// The same copies, made to run in place too: now they write where the sends read.
TEST(Dependences, OfACopyThatIsNotSkippedInPlace) {
  Schedule s = slotReuse(1);
  s.steps[0].skipWhenAliased = false;
  EXPECT_THAT(dependencesOf(s).edges,
              ElementsAre(Dependence{recvOp(0), sendOp(1)}, Dependence{sendOp(0), stepOp(s, 0)}));
}

TEST(Dependences, OfAMessageOfTwoPieces) {
  const Schedule s = coalescedScatter();
  EXPECT_THAT(dependencesOf(s).edges,
              ElementsAre(Dependence{recvOp(2), sendOp(3)}, Dependence{recvOp(2), sendOp(4)}));
}

// A step that reads and writes one place does not wait for itself.
TEST(Dependences, OfASumInPlace) {
  Hand h(makeShape(Collective::AllReduce, 2, {Group{{0, 1}, 0}}));
  h.beginPhase();
  const Ref raw = h.slot(0);
  const Ref sum = h.slot(0, 0, 0, Width::Accumulator);
  h.transfer(h.in(1), raw);
  h.fold(sum, {h.in(0)}, 1);
  h.fold(sum, {sum, raw}, 1);
  h.fold(h.out(0), {sum}, 2);
  const Schedule s = std::move(h).finish();
  EXPECT_THAT(
      dependencesOf(s).edges,
      ElementsAre(Dependence{recvOp(0), stepOp(s, 1)}, Dependence{stepOp(s, 0), stepOp(s, 1)},
                  Dependence{stepOp(s, 0), stepOp(s, 2)},  // input, then output
                  Dependence{stepOp(s, 1), stepOp(s, 2)}));
}

TEST(Dependences, StayOnARankAndPointForward) {
  for (const Schedule& s : handWritten()) {
    std::vector<int> rank(2 * s.transfers.size() + s.steps.size());
    std::vector<std::size_t> when(rank.size());
    for (std::size_t p = 0; p < s.phases.size(); ++p) {
      const Phase& phase = s.phases[p];
      for (auto t = phase.firstTransfer; t < phase.firstTransfer + phase.transferCount; ++t) {
        rank[sendOp(t)] = s.transfers[t].from.rank;
        rank[recvOp(t)] = s.transfers[t].to.rank;
        when[sendOp(t)] = when[recvOp(t)] = p + phase.firstStep;
      }
      for (auto i = phase.firstStep; i < phase.firstStep + phase.stepCount; ++i) {
        rank[stepOp(s, i)] = s.steps[i].to.rank;
        when[stepOp(s, i)] = p + i + 1;
      }
    }
    std::set<std::pair<OpId, OpId>> seen;
    for (const Dependence& d : dependencesOf(s).edges) {
      ASSERT_LT(d.before, rank.size());
      ASSERT_LT(d.after, rank.size());
      EXPECT_EQ(rank[d.before], rank[d.after]);
      EXPECT_LT(when[d.before], when[d.after]);
      EXPECT_TRUE(seen.insert({d.after, d.before}).second) << "twice";
      EXPECT_EQ(*seen.rbegin(), std::pair(d.after, d.before)) << "not sorted";
    }
  }
}

// Whatever the ranks' speeds: any order that the graph allows ends, and ends as phase by phase.
TEST(Dependences, AllowOnlyOrdersWithTheSameResult) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (const Schedule& s : handWritten()) {
    SCOPED_TRACE(s.name);
    const auto verified = verify(s);
    const int orders = s.transfers.size() > 100 ? 3 : 300;
    for (const bool inPlace : {false, true}) {
      if (inPlace && s.shape.collective == Collective::AllToAll) continue;
      const RandomOrder::Memory expected = RandomOrder(*verified, inPlace).phaseByPhase();
      for (int i = 0; i < orders; ++i) {
        const auto found = RandomOrder(*verified, inPlace).run(random);
        ASSERT_TRUE(found.has_value()) << "blocked";
        ASSERT_EQ(*found, expected) << "order " << i << " in place " << inPlace;
      }
    }
  }
}

// The check above can fail: without waiting for readers some order goes wrong.
TEST(Dependences, MustLetReadersFinish) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto verified = verify(slotReuse(3));
  RandomOrder::Memory expected = RandomOrder(*verified, false).phaseByPhase();
  const DependenceGraph wrong = dependencesOf(verified->schedule(), /*withWriteAfterRead=*/false);
  int different = 0;
  for (int i = 0; i < 300; ++i) {
    const auto found = RandomOrder(*verified, false, wrong).run(random);
    if (found != expected) ++different;
  }
  EXPECT_GT(different, 0);
}

TEST(Places, AreAllDifferent) {
  const Schedule s = relayedPairs({{0, 1}, {2, 3}}, 5);
  const Places places(s);
  EXPECT_EQ(places.cells(), 8u);
  std::set<std::uint32_t> seen;
  for (int r = 0; r < 5; ++r) {
    for (std::uint32_t block = 0; block < 2; ++block) {
      for (std::uint32_t share = 0; share < 4; ++share) {
        const Piece piece{block, share, 0};
        const auto place = places.of({Space::Input, Width::Element, r, 0, 1}, piece);
        EXPECT_TRUE(seen.insert(place).second);
        EXPECT_EQ(places.of({Space::Output, Width::Element, r, 0, 1}, piece), place);
        EXPECT_EQ(places.cell(piece), 4 * block + share);
      }
    }
    for (std::uint32_t slot = 0; slot < s.slots[static_cast<std::size_t>(r)]; ++slot) {
      const Ref ref{Space::Stage, Width::Element, r, 0, 1};
      EXPECT_TRUE(seen.insert(places.of(ref, {0, 0, slot})).second);
      EXPECT_EQ(places.of(ref, {1, 2, slot}), places.of(ref, {0, 0, slot}));
    }
  }
  EXPECT_EQ(seen.size(), places.count());
  EXPECT_EQ(*seen.rbegin(), places.count() - 1);
}

}  // namespace
}  // namespace byway
