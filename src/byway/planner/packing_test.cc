// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/packing.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "byway/planner/constructions.h"
#include "byway/planner/flow_lp.h"
#include "byway/planner/limits.h"
#include "byway/planner/packing_testing.h"
#include "byway/planner/planner.h"
#include "byway/schedule/loads.h"
#include "byway/schedule/verify.h"

namespace byway {
namespace {

Cell cellOf(Collective collective, const Topology& topology, std::vector<Group> groups,
            const std::vector<double>& counts = {}) {
  Cell cell;
  cell.collective = collective;
  cell.ranks = topology.ranks;
  cell.groups = std::move(groups);
  cell.topology = &topology;
  setBytes(cell, counts, 64 << 20);
  return cell;
}

// The value with so many stages; 0 where there is no such candidate.
double valueOf(const Cell& cell, int stages) {
  for (const Candidate& candidate : packedCandidates(cell, false)) {
    if (candidate.stages == stages) return candidate.value;
  }
  return 0;
}

// All pieces of routes of two hops fit into three of four stages.
constexpr double kFourThirds = 4.0 / 3;

TEST(Packing, APairAndOneHelper) {
  const Topology mesh = meshTopology(3, 5e9);
  for (const auto collective : {Collective::AllGather, Collective::AllToAll, Collective::AllReduce,
                                Collective::ReduceScatter}) {
    // x <= T direct, 4/3 y <= T through the helper, x + y = 1.
    EXPECT_NEAR(valueOf(cellOf(collective, mesh, {{{2, 0}, 0}}), 4), 4.0 / 7, 1e-9);
  }
}

TEST(Packing, ASlowLinkCarriesItsShare) {
  Topology mesh = meshTopology(3, 1.0);
  linkOf(mesh, 0, 1) = 0.25;
  // x <= T/4 direct, 4/3 y <= T.
  EXPECT_NEAR(valueOf(cellOf(Collective::Broadcast, mesh, {{{0, 1}, 0}}), 4), 1, 1e-9);
  EXPECT_NEAR(valueOf(cellOf(Collective::Broadcast, mesh, {{{0, 1}, 1}}), 4), 4.0 / 7, 1e-9);
}

TEST(Packing, AMissingLinkCarriesNothing) {
  Topology mesh = meshTopology(3, 1.0);
  linkOf(mesh, 0, 1) = 0;
  EXPECT_NEAR(valueOf(cellOf(Collective::Scatter, mesh, {{{0, 1}, 0}}), 4), kFourThirds, 1e-9);
  EXPECT_NEAR(valueOf(cellOf(Collective::Scatter, mesh, {{{0, 1}, 1}}), 4), 4.0 / 7, 1e-9);
}

// Pairs of counts 1 and 1/2: a and b through each rank of the other pair, T + 2a = 1,
// T + 2b = 1/2, and a link between the pairs carries 4/3 (a + b) <= T.
TEST(Packing, UnequalCountsShareTheLinksBetweenPairs) {
  const Topology mesh = meshTopology(4, 1.0);
  const Cell cell = cellOf(Collective::AllToAll, mesh, {{{0, 1}, 0}, {{2, 3}, 0}}, {1, 0.5});
  EXPECT_NEAR(valueOf(cell, 4), 3.0 / 7, 1e-5);
}

// A sum of three members weighs 2 on its way to the root: 2x + 2 * 4/3 (1 - x) <= 3T into the
// root, and x <= T.
TEST(Packing, PartialSumsWeighMore) {
  const Topology mesh = meshTopology(4, 1.0);
  Cell cell = cellOf(Collective::Reduce, mesh, {{{0, 1, 2}, 0}});
  EXPECT_NEAR(valueOf(cell, 4), 4.0 / 9, 1e-5);  // 4/3 of 1/3
  cell.partialWeight = 2;
  EXPECT_NEAR(valueOf(cell, 4), 8.0 / 11, 1e-5);
}

TEST(Packing, WhoCannotBeReachedIsNamed) {
  Topology mesh = meshTopology(4, 1.0);
  for (int from = 0; from < 4; ++from) linkOf(mesh, from, 2) = 0;
  const auto refusal = [&](Collective collective, int root) -> std::string {
    try {
      packedCandidates(cellOf(collective, mesh, {{{1, 2}, root}}), false);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
      return error.what();
    }
    return "no error";
  };
  const auto names = testing::HasSubstr("no links lead from rank 1 to rank 2 of group [1, 2]");
  EXPECT_THAT(refusal(Collective::AllReduce, 0), names);
  EXPECT_THAT(refusal(Collective::Scatter, 0), names);
  EXPECT_THAT(refusal(Collective::Gather, 1), names);
  EXPECT_EQ(refusal(Collective::Scatter, 1), "no error");
}

TEST(Packing, AChainOfLinksIsLongEnough) {
  Topology ring = meshTopology(12, 1.0);
  for (int u = 0; u < 12; ++u) {
    for (int v = 0; v < 12; ++v) {
      if (v != (u + 1) % 12) linkOf(ring, u, v) = 0;
    }
  }
  const auto candidates =
      packedCandidates(cellOf(Collective::AllReduce, ring, {{{0, 11}, 0}}), false);
  ASSERT_EQ(candidates.size(), 1U);
  EXPECT_TRUE(violations(candidates[0].build()).empty());
}

TEST(Packing, RegularCellsPayNothing) {
  const Topology mesh = meshTopology(8, 1.0), host = hostTopology(8);
  const std::vector<Group> one{{{0, 1, 2, 3}, 0}}, unlike{{{0, 1, 2}, 0}, {{4, 5}, 0}};
  EXPECT_TRUE(packingCandidates(cellOf(Collective::AllGather, mesh, one)).empty());
  EXPECT_TRUE(packingCandidates(cellOf(Collective::AllGather, host, unlike)).empty());
  EXPECT_FALSE(packingCandidates(cellOf(Collective::AllGather, mesh, unlike)).empty());
}

void expectSound(const PackingCell& one, const Candidate& candidate) {
  const Schedule schedule = candidate.build();
  for (const Violation& v : violations(schedule)) ADD_FAILURE() << "V" << v.rule << ": " << v.what;
  for (const Transfer& t : schedule.transfers) {
    EXPECT_GT(one.topology.link(t.from.rank, t.to.rank), 0) << t.from.rank << " to " << t.to.rank;
  }
  EXPECT_EQ(schedule.phases.size(), static_cast<std::size_t>(candidate.stages));
  EXPECT_EQ(hashOf(schedule), hashOf(candidate.build()));
  const Loads loads = loadsOf(schedule, one.cell.blockBytes, one.cell.partialWeight);
  const double unit = *std::max_element(one.cell.blockBytes.begin(), one.cell.blockBytes.end()) /
                      candidate.linkRate;
  for (int u = 0; u < one.cell.ranks; ++u) {
    for (int v = 0; v < one.cell.ranks; ++v) {
      const double load = loads.total[static_cast<std::size_t>(u * one.cell.ranks + v)];
      if (load <= 0) continue;
      EXPECT_LE(load / one.topology.link(u, v), 1.0001 * candidate.value * unit);
    }
  }
  EXPECT_LE(*std::max_element(loads.messages.begin(), loads.messages.end()),
            static_cast<std::uint32_t>(candidate.messagesPerRank) + 64);
}

// Where each group's blocks are alike and the flow LP is small, its limit holds.
void expectNoBetterThanTheLimit(const PackingCell& one, const Candidate& candidate) {
  LimitRequest request{one.cell.collective, one.cell.groups, {}, false};
  std::size_t block = 0;
  for (const Group& group : one.cell.groups) {
    const auto end =
        block + static_cast<std::size_t>(blocksPerGroup(request.collective, group.size()));
    for (auto b = block; b < end; ++b) {
      if (one.cell.blockBytes[b] != one.cell.blockBytes[block]) return;
    }
    request.counts.push_back(one.cell.blockBytes[block]);
    block = end;
  }
  if (flowLpSize(limitProblem(request, one.topology)) > 1500) return;
  const double largest = *std::max_element(one.cell.blockBytes.begin(), one.cell.blockBytes.end());
  const double limit = fluidLimit(request, one.topology);
  EXPECT_GE(candidate.value * largest / candidate.linkRate, limit * (1 - 1e-6));
}

TEST(Packing, RandomCellsAreSound) {
  std::mt19937_64 random(20261129);
  PackingCell one;
  for (int round = 0; round < 300; ++round) {
    drawPackingCell(random, one, 1e9, 64 << 20);
    const auto candidates = packedCandidates(one.cell, false);
    if (candidates.empty()) continue;
    const Candidate& candidate = candidates[random() % candidates.size()];
    SCOPED_TRACE("round " + std::to_string(round) + " " + toString(one.cell.collective) + " " +
                 candidate.name);
    expectSound(one, candidate);
    expectNoBetterThanTheLimit(one, candidate);
    if (HasFailure()) return;
  }
}

PlanRequest requestOf(const Cell& cell) {
  PlanRequest request;
  request.collective = cell.collective;
  request.ranks = cell.ranks;
  request.groups = cell.groups;
  request.partialWeight = cell.partialWeight;
  for (const double bytes : cell.blockBytes) {
    request.blockBytes.push_back(static_cast<std::uint64_t>(bytes));
  }
  return request;
}

// schedules.md, 1.5: helpers that sum halve what the ports of an allreduce carry; nothing else
// gains where ports are the limit.
TEST(Packing, BehindASwitchHelpersOnlySum) {
  const Topology fabric = switchTopology(8, 1e9);
  const auto gain = [&](Collective collective, int members, int groups) {
    std::vector<Group> all;
    for (int g = 0; g < groups; ++g) {
      all.emplace_back();
      for (int i = 0; i < members; ++i) all.back().ranks.push_back(g * members + i);
    }
    const Plan made = plan(requestOf(cellOf(collective, fabric, all)), fabric);
    return made.directPredicted / made.predicted;
  };
  EXPECT_GT(gain(Collective::AllReduce, 4, 1), 0.95 * 1.5);
  EXPECT_GT(gain(Collective::AllReduce, 3, 1), 0.95 * 4 / 3);
  EXPECT_EQ(gain(Collective::AllReduce, 4, 2), 1);
  EXPECT_EQ(gain(Collective::AllReduce, 2, 1), 1);
  for (const auto collective : {Collective::AllGather, Collective::AllToAll, Collective::Broadcast,
                                Collective::ReduceScatter}) {
    EXPECT_EQ(gain(collective, 4, 1), 1) << toString(collective);
    EXPECT_EQ(gain(collective, 4, 2), 1) << toString(collective);
  }
}

// The time of the best of three, since other programs may run beside.
double packingTime(const Cell& cell, std::vector<Candidate>& candidates) {
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    candidates = packedCandidates(cell, false);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    least = std::min(least, took.count());
  }
  return least;
}

TEST(TimedPacking, EveryIrregularRowOfTheOracleInTime) {
  double longest = 0;
  for (const PackingCell& one : irregularOracleCells(BYWAY_LIMITS_JSON, 1e9, 64 << 20)) {
    std::vector<Candidate> candidates;
    const double took = packingTime(one.cell, candidates);
    const Candidate& last = candidates.back();
    std::printf("%-54s limit %.4f, K=%d %.3f of it, %.1f ms\n", one.name.c_str(), one.limit,
                last.stages, one.limit / last.value, 1e3 * took);
    EXPECT_GE(one.limit / last.value, 0.94) << one.name;
    EXPECT_LT(took, 0.2) << one.name;
    longest = std::max(longest, took);
  }
  std::printf("longest %.1f ms\n", 1e3 * longest);
}

}  // namespace
}  // namespace byway
