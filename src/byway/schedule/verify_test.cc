// SPDX-License-Identifier: BSD-3-Clause
// Right schedules are accepted, and what is made of them. The rules have files of their own.
#include "byway/schedule/verify.h"

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "byway/base/error.h"
#include "byway/schedule/schedule_test_util.h"
#include "byway/schedule/verify_test_util.h"

namespace byway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace testing_util;  // NOLINT(google-build-using-namespace): the hand-written schedules

TEST(Verify, AcceptsHandWrittenSchedules) {
  for (const Schedule& s : handWritten()) EXPECT_TRUE(accepted(s));
}

TEST(Verify, AcceptsExchangesOfEverySize) {
  for (const int size : {1, 2, 3, 15, 16, 17, 18, 31, 32, 33, 48, 49}) {
    EXPECT_TRUE(accepted(exchange(upTo(size), size))) << size;
  }
}

TEST(Verify, AcceptsOneMemberOfEveryCollective) {
  const auto one = [](Collective c) {
    Hand h(makeShape(c, 2, {Group{{1}, 0}}));
    h.beginPhase();
    if (reduces(c)) {
      h.fold(h.out(1), {h.in(1)}, 1);
    } else {
      h.keepOwn(1);
    }
    return std::move(h).finish();
  };
#define BYWAY_X(id, name, reduces) EXPECT_TRUE(accepted(one(Collective::id)));
  BYWAY_COLLECTIVES(BYWAY_X)
#undef BYWAY_X
}

TEST(Verify, AcceptsAllPairsFused) {
  EXPECT_TRUE(accepted(relayedPairs({{0, 1}, {2, 3}, {4, 5}, {6, 7}}, 8)));
}

TEST(Verify, AcceptsARelayThroughManyShares) { EXPECT_TRUE(accepted(slotReuse(64))); }

TEST(Verify, AcceptsWhatNobodyCalls) {
  EXPECT_TRUE(accepted(ScheduleBuilder(makeShape(Collective::AllReduce, 4, {})).finish()));
}

// A sum may be continued where it arrives: (x0 + x1) here, + x2 there.
TEST(Verify, AcceptsAChainOfPartials) {
  Hand h(makeShape(Collective::Reduce, 3, {Group{{0, 1, 2}, 2}}));
  h.beginPhase();
  const Ref raw = h.slot(1);
  h.transfer(h.in(0), raw);
  const Ref sum = h.slot(1, 0, 0, Width::Accumulator);
  h.fold(sum, {raw, h.in(1)}, 1);
  h.beginPhase();
  const Ref arrived = h.slot(2, 0, 0, Width::Accumulator);
  h.transfer(sum, arrived);
  h.fold(h.out(2), {arrived, h.in(2)}, 3);
  EXPECT_TRUE(accepted(std::move(h).finish()));
}

TEST(Verify, KeepsScheduleGraphAndHash) {
  const Schedule s = relayedPairs({{0, 1}}, 3);
  const auto verified = verify(s);
  EXPECT_EQ(verified->schedule(), s);
  EXPECT_EQ(verified->hash(), hashOf(s));
  EXPECT_EQ(verified->graph().edges, dependencesOf(s).edges);
}

TEST(Verify, CallsATemplateWhatOwnCountsCanBind) {
  EXPECT_FALSE(verify(exchange(upTo(3), 3))->isTemplate());       // sums in stage memory
  EXPECT_FALSE(verify(relayedPairs({{0, 1}}, 4))->isTemplate());  // cut blocks
  EXPECT_TRUE(verify(Hand(makeShape(Collective::AllToAll, 2, {})).finish())->isTemplate());
}

TEST(Verify, ThrowsWhatItFinds) {
  Schedule s = slotReuse(1);
  s.name = "mine";
  s.steps.clear();
  s.inputs.clear();
  s.phases = {{0, 1, 0, 0}, {1, 1, 0, 0}};
  try {
    verify(s);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
    EXPECT_THAT(e.what(), HasSubstr("schedule \"mine\" is wrong:\n  V8: rank 0 block 0 share 0 "
                                    "ends as nothing instead of x0"));
  }
}

TEST(Verify, ListsAtMostSixteenFindings) {
  Schedule s = allGather(8);
  s.steps.clear();
  s.inputs.clear();
  s.transfers.clear();
  s.phases.clear();
  EXPECT_EQ(violations(s).size(), 16u);
}

// Helper 2 of relayedPairs: four operations, receives first.
TEST(LocalProgram, IsOneRanksPart) {
  const auto verified = verify(relayedPairs({{0, 1}}, 3));
  const LocalProgram& p = verified->local(2);
  EXPECT_EQ(p.rank, 2);
  EXPECT_EQ(p.slots, 2u);
  std::vector<LocalKind> kinds;
  std::vector<std::uint32_t> indices, waits, followers;
  for (const LocalOp& op : p.ops) {
    kinds.push_back(op.kind);
    indices.push_back(op.index);
    waits.push_back(op.waitsFor);
    followers.push_back(op.nextCount);
  }
  EXPECT_THAT(kinds, ElementsAre(LocalKind::Recv, LocalKind::Recv, LocalKind::Reduce,
                                 LocalKind::Send, LocalKind::Send));
  EXPECT_THAT(indices, ElementsAre(2, 3, 2, 4, 5));
  EXPECT_THAT(waits, ElementsAre(0, 0, 2, 1, 1));
  EXPECT_THAT(followers, ElementsAre(1, 1, 2, 0, 0));
  EXPECT_THAT(p.next, ElementsAre(2, 2, 3, 4));
  // Two receives and the sum, in place in the first slot.
  ASSERT_EQ(p.slotUses.size(), 3u);
  for (const std::size_t i : {0u, 1u, 2u}) {
    EXPECT_EQ(p.slotUses[i].slot, i % 2);
    EXPECT_EQ(p.slotUses[i].share, 1u);
    EXPECT_EQ(p.slotUses[i].width, Width::Element);
  }
}

OpId opOf(const Schedule& s, const LocalOp& op) {
  switch (op.kind) {
    case LocalKind::Send:
      return sendOp(op.index);
    case LocalKind::Recv:
      return recvOp(op.index);
    case LocalKind::Reduce:
    case LocalKind::Copy:
      return stepOp(s, op.index);
  }
  return 0;
}

TEST(LocalProgram, TogetherTheyHoldEveryOperationAndDependenceOnce) {
  for (const Schedule& s : handWritten()) {
    const auto verified = verify(s);
    std::vector<OpId> ops;
    std::vector<std::pair<OpId, OpId>> edges, expected;
    for (int r = 0; r < s.shape.ranks; ++r) {
      const LocalProgram& p = verified->local(r);
      std::vector<std::uint32_t> waits(p.ops.size());
      for (const LocalOp& op : p.ops) {
        ops.push_back(opOf(s, op));
        for (const auto next : std::span(p.next).subspan(op.firstNext, op.nextCount)) {
          edges.emplace_back(ops.back(), opOf(s, p.ops.at(next)));
          ++waits[next];
        }
      }
      for (std::size_t i = 0; i < waits.size(); ++i) EXPECT_EQ(p.ops[i].waitsFor, waits[i]);
    }
    std::sort(ops.begin(), ops.end());
    std::sort(edges.begin(), edges.end());
    for (const auto& d : verified->graph().edges) expected.emplace_back(d.before, d.after);
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(edges, expected) << s.name;
    std::vector<OpId> all(2 * s.transfers.size() + s.steps.size());
    std::iota(all.begin(), all.end(), 0U);
    EXPECT_EQ(ops, all) << s.name;
  }
}

TEST(LocalProgram, IsMadeOnceFromAnyThread) {
  const auto verified = verify(relayedPairs({{0, 1}, {2, 3}}, 4));
  std::vector<const LocalProgram*> seen(16);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int r = 0; r < 4; ++r) {
        seen[4 * t + static_cast<std::size_t>(r)] = &verified->local(r);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::size_t i = 4; i < 16; ++i) EXPECT_EQ(seen[i], seen[i % 4]);
}

TEST(LocalProgram, RefusesOtherRanks) {
  const auto verified = verify(exchange({0, 1}, 2));
  EXPECT_THROW(verified->local(-1), Error);
  EXPECT_THROW(verified->local(2), Error);
}

}  // namespace
}  // namespace byway
