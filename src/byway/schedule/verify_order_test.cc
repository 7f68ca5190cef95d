// SPDX-License-Identifier: BSD-3-Clause
// Rules V6 and V7: what may run at the same time.
#include <algorithm>

#include <gtest/gtest.h>

#include "byway/schedule/schedule_test_util.h"
#include "byway/schedule/verify_test_util.h"

namespace byway {
namespace {

using namespace testing_util;  // NOLINT(google-build-using-namespace): the hand-written schedules

TEST(V6, ReceivesTwiceIntoOneSlot) {
  Schedule s = exchange({0, 1, 2}, 3);
  // Both of rank 0's receives go into slot 0.
  s.pieces[s.transfers[1].to.first].slot = s.pieces[s.transfers[0].to.first].slot;
  EXPECT_TRUE(refusedBy(6, "transfer 1 writes what another transfer of phase 0 writes", s));
}

TEST(V6, ReceivesAShareTwice) {
  Schedule s = gather(3, 0);
  s.transfers[1].from = s.transfers[0].from;
  s.transfers[1].to = s.transfers[0].to;
  EXPECT_TRUE(refusedBy(6, "block 1 share 0 on rank 0", s));
}

TEST(V6, ForwardsWhatArrivesInTheSamePhase) {
  Schedule s = slotReuse(1);
  s.phases = {{0, 2, 0, 1}};
  EXPECT_TRUE(refusedBy(6, "transfer 0 writes what another transfer of phase 0 reads", s));
}

// In place the input would be overwritten while it is sent.
TEST(V6, ReceivesIntoTheOutputWhileTheInputIsSent) {
  Hand h(makeShape(Collective::AllReduce, 3, {Group{{0, 1}, 0}}));
  const Ref slot = h.slot(2);
  h.beginPhase();
  h.transfer(h.in(1), slot);
  h.beginPhase();
  h.transfer(h.in(0), h.slot(1));
  h.transfer(slot, h.out(0));
  EXPECT_TRUE(refusedBy(6, "transfer 2 writes what another transfer of phase 1 reads",
                        std::move(h).finish()));
}

TEST(V6, ListsAPlaceTwiceInOneMessage) {
  Schedule s = coalescedScatter();
  const Ref& to = s.transfers[2].to;
  s.pieces[to.first + 1].slot = s.pieces[to.first].slot;
  EXPECT_TRUE(refusedBy(6, "transfer 2 writes what another transfer of phase 0 writes", s));
}

// One wrong thing, one finding.
TEST(V6, IsReportedOnce) {
  Schedule s = slotReuse(1);
  s.phases = {{0, 2, 0, 1}};
  const auto found = violations(s);
  EXPECT_TRUE(std::none_of(found.begin(), found.end(), [](const Violation& v) {
    return v.rule == 7;
  })) << listed(found);
}

TEST(V7, ReusesASlotWithoutWaitingForItsReader) {
  const Schedule s = slotReuse(4);
  const auto found = violations(s, dependencesOf(s, /*withWriteAfterRead=*/false));
  EXPECT_TRUE(refusedBy(7, "write after read unordered", found));
  EXPECT_TRUE(std::all_of(found.begin(), found.end(), [](const Violation& v) {
    return v.rule == 7;
  })) << listed(found);
}

// The output is where the input is.
TEST(V7, OverwritesAnInputThatIsStillSent) {
  const Schedule s = exchange({0, 1}, 2);
  EXPECT_TRUE(refusedBy(7, "write after read unordered",
                        violations(s, dependencesOf(s, /*withWriteAfterRead=*/false))));
}

TEST(V7, SendsWhatHasNotArrived) {
  const Schedule s = slotReuse(1);
  DependenceGraph graph = dependencesOf(s);
  std::erase(graph.edges, Dependence{recvOp(0), sendOp(1)});
  EXPECT_TRUE(refusedBy(7, "read after write unordered: operations 1 and 2 on rank 2",
                        violations(s, graph)));
}

TEST(V7, LeavesTwoWritesUnordered) {
  Hand h(makeShape(Collective::Broadcast, 2, {Group{{0, 1}, 0}}));
  h.beginPhase();
  h.transfer(h.in(0), h.out(1));
  h.keepOwn(0);
  h.beginPhase();
  h.transfer(h.in(0), h.out(1));
  const Schedule s = std::move(h).finish();
  EXPECT_TRUE(accepted(s));
  DependenceGraph graph = dependencesOf(s);
  std::erase(graph.edges, Dependence{recvOp(0), recvOp(1)});
  EXPECT_TRUE(refusedBy(7, "write after write unordered", violations(s, graph)));
}

// Every dependence that no chain of others implies is needed.
TEST(V7, LacksAnyOneDependence) {
  for (const Schedule& s : {slotReuse(3), relayedPairs({{0, 1}, {2, 3}}, 4),
                            reduceScatterByPartials(), forwardedBroadcast()}) {
    const DependenceGraph graph = dependencesOf(s);
    const auto implied = [&](const Dependence& d) {
      return std::any_of(graph.edges.begin(), graph.edges.end(), [&](const Dependence& first) {
        return first.before == d.before && first.after != d.after &&
               std::binary_search(
                   graph.edges.begin(), graph.edges.end(), Dependence{first.after, d.after},
                   [](const Dependence& a, const Dependence& b) {
                     return std::pair(a.after, a.before) < std::pair(b.after, b.before);
                   });
      });
    };
    for (std::size_t i = 0; i < graph.edges.size(); ++i) {
      DependenceGraph less = graph;
      less.edges.erase(less.edges.begin() + static_cast<std::ptrdiff_t>(i));
      const auto found = violations(s, less);
      if (implied(graph.edges[i])) {
        EXPECT_TRUE(found.empty()) << listed(found);
      } else {
        EXPECT_TRUE(refusedBy(7, "unordered", found)) << s.name << " edge " << i;
      }
    }
  }
}

TEST(V7, PointsBackward) {
  const Schedule s = slotReuse(1);
  const auto forward = dependencesOf(s);
  EXPECT_EQ(forward.edges, (std::vector<Dependence>{{recvOp(0), sendOp(1)}}));
  DependenceGraph graph = forward;
  graph.edges.insert(graph.edges.begin(), {sendOp(1), recvOp(0)});
  EXPECT_TRUE(refusedBy(7, "does not point forward", violations(s, graph)));
}

TEST(V7, LeavesACopyInPlaceUnordered) {
  Schedule s = slotReuse(1);
  const DependenceGraph graph = dependencesOf(s);
  EXPECT_TRUE(violations(s, graph).empty());
  s.steps[0].skipWhenAliased = false;
  EXPECT_TRUE(refusedBy(7, "write after read", violations(s, graph)));
}

TEST(V7, PointsAtItselfOrWithinAPhase) {
  const Schedule s = exchange({0, 1}, 2);
  for (const Dependence& d : {Dependence{sendOp(0), sendOp(0)}, Dependence{sendOp(1), recvOp(0)},
                              Dependence{recvOp(0), sendOp(1)}}) {
    DependenceGraph graph = dependencesOf(s);
    graph.edges.push_back(d);
    std::sort(graph.edges.begin(), graph.edges.end(), [](const auto& a, const auto& b) {
      return std::pair(a.after, a.before) < std::pair(b.after, b.before);
    });
    EXPECT_TRUE(refusedBy(7, "does not point forward", violations(s, graph)));
  }
}

TEST(V7, JoinsOperationsOfTwoRanks) {
  const Schedule s = slotReuse(1);
  DependenceGraph graph = dependencesOf(s);
  graph.edges.push_back({stepOp(s, 0), recvOp(1)});
  EXPECT_TRUE(refusedBy(7, "within a rank", violations(s, graph)));
}

TEST(V7, NamesNoOperation) {
  const Schedule s = slotReuse(1);
  DependenceGraph graph = dependencesOf(s);
  graph.edges.push_back({0, 99});
  EXPECT_TRUE(refusedBy(7, "dependence 0 -> 99", violations(s, graph)));
  graph.edges.back() = {99, 0};
  EXPECT_TRUE(refusedBy(7, "dependence 99 -> 0", violations(s, graph)));
}

TEST(V7, IsNotSorted) {
  const Schedule s = slotReuse(2);
  DependenceGraph graph = dependencesOf(s);
  std::swap(graph.edges.front(), graph.edges.back());
  EXPECT_TRUE(refusedBy(7, "not sorted", violations(s, graph)));
  graph = dependencesOf(s);
  graph.edges.push_back(graph.edges.back());
  EXPECT_TRUE(refusedBy(7, "not sorted", violations(s, graph)));
}

}  // namespace
}  // namespace byway
