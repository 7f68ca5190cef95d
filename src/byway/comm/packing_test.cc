// SPDX-License-Identifier: BSD-3-Clause
// The packing LP's schedules on the virtual clock: how near they come to the fluid limit, and what
// they compute.
#include "byway/planner/packing.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "byway/comm/random_call_test_util.h"
#include "byway/comm/virtual_world.h"
#include "byway/planner/packing_testing.h"
#include "byway/planner/planner.h"

namespace byway {
namespace {

constexpr double kRate = 1e9;
constexpr double kBytes = 64 << 20;

Plan planOf(const Cell& cell) {
  PlanRequest request;
  request.collective = cell.collective;
  request.ranks = cell.ranks;
  request.groups = cell.groups;
  request.partialWeight = cell.partialWeight;
  for (const double bytes : cell.blockBytes) {
    request.blockBytes.push_back(static_cast<std::uint64_t>(bytes));
  }
  return plan(request, *cell.topology);
}

Seconds runOf(const std::shared_ptr<const VerifiedSchedule>& schedule, const Cell& cell) {
  VirtualCall call;
  call.schedule = schedule;
  for (const double bytes : cell.blockBytes) {
    call.blockCounts.push_back(static_cast<std::uint64_t>(bytes) / sizeOf(call.dtype));
  }
  return VirtualWorld(*cell.topology).run(call);
}

bool usesMissingLink(const Schedule& schedule, const Topology& topology) {
  return std::any_of(schedule.transfers.begin(), schedule.transfers.end(),
                     [&](const Transfer& t) { return topology.link(t.from.rank, t.to.rank) <= 0; });
}

// Every row that no formula covers, as plan() chooses for it.
TEST(Packing, EveryIrregularRowComesNearTheLimit) {
  double lowest = 1, furthest = 0;
  int lopsided = 0;
  for (const PackingCell& one : irregularOracleCells(BYWAY_LIMITS_JSON, kRate, kBytes)) {
    SCOPED_TRACE(one.name);
    lopsided += one.name.find(" member-") != std::string::npos ? 1 : 0;
    const Plan made = planOf(one.cell);
    EXPECT_FALSE(usesMissingLink(made.chosen->schedule(), one.topology));
    const Seconds time = runOf(made.chosen, one.cell);
    const Seconds limit = one.limit * kBytes / kRate;
    std::printf("%-52s %-14s %.3f of the limit\n", one.name.c_str(),
                made.chosen->schedule().name.c_str(), limit / time);
    EXPECT_GE(limit / time, reduces(one.cell.collective) ? 0.92 : 0.93);
    EXPECT_LE(limit / time, 1.0001);
    lowest = std::min(lowest, limit / time);
    furthest = std::max(furthest, std::abs(made.predicted / time - 1));
    EXPECT_NEAR(made.predicted, time, 0.02 * time);  // ties of messages may be broken otherwise
  }
  // A link of two members, or of a member and a helper; a quarter of the rate, missing, or a
  // quarter one way; A=2 and A=4 alone, A=4 fused; all collectives.
  EXPECT_EQ(lopsided, 2 * 3 * 3 * 8);
  std::printf("lowest %.3f of the limit; predictions within %.4f\n", lowest, furthest);
}

// At every size, with latencies.
TEST(Packing, NoChoiceIsSlowerThanDirect) {
  for (const double bytes : {4096.0, 262144.0, 2097152.0}) {
    int number = 0;
    for (PackingCell& one : irregularOracleCells(BYWAY_LIMITS_JSON, kRate, bytes)) {
      if (++number % 5 != 0) continue;
      SCOPED_TRACE(one.name);
      one.topology.alpha = 20e-6;
      const Plan made = planOf(one.cell);
      EXPECT_LE(runOf(made.chosen, one.cell), 1.001 * runOf(made.direct, one.cell));
    }
  }
}

// The recorded sizes of a production optimizer's synchronisation.
TEST(Packing, UnequalCountsOfFourPairs) {
  const Topology mesh = meshTopology(8, kRate);
  for (const auto collective :
       {Collective::AllReduce, Collective::AllGather, Collective::AllToAll}) {
    Cell cell;
    cell.collective = collective;
    cell.ranks = 8;
    cell.topology = &mesh;
    cell.groups = {{{0, 1}, 0}, {{2, 3}, 0}, {{4, 5}, 0}, {{6, 7}, 0}};
    setBytes(cell, {1, 560.0 / 634, 553.0 / 634, 479.0 / 634}, kBytes);
    const Plan made = planOf(cell);
    EXPECT_GE(runOf(made.direct, cell) / runOf(made.chosen, cell), 4.3) << toString(collective);
  }
}

void drawType(std::mt19937_64& random, RandomCall& call, Cell& cell) {
  struct Type {
    DType dtype;
    ReduceOp op;
  };
  constexpr Type kTypes[] = {{DType::Float32, ReduceOp::Sum},
                             {DType::BFloat16, ReduceOp::Avg},
                             {DType::Float64, ReduceOp::Product},
                             {DType::Int8, ReduceOp::Avg},
                             {DType::Int32, ReduceOp::Max}};
  const Type type = kTypes[random() % 5];
  call.dtype = type.dtype;
  call.op = reduces(call.collective) ? type.op : ReduceOp::Sum;
  const auto accumulator =
      reduces(call.collective) ? accumulatorOf(call.dtype, call.op) : call.dtype;
  cell.partialWeight =
      static_cast<double>(sizeOf(accumulator)) / static_cast<double>(sizeOf(call.dtype));
}

TEST(Packing, RandomCellsComputeWhatTheyMust) {
  constexpr int kPlans = 300;
  const char* text = std::getenv("BYWAY_TEST_SEED");
  const std::uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : 7;
  std::printf("seed %llu (BYWAY_TEST_SEED sets it)\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  PackingCell one;
  int plans = 0;
  for (int round = 0; plans < kPlans; ++round) {
    ASSERT_LT(round, 4 * kPlans) << "only " << plans << " cells had LP plans";
    drawPackingCell(random, one, kRate, 16000);
    RandomCall call;
    call.collective = one.cell.collective;
    call.ranks = one.cell.ranks;
    call.groups = one.cell.groups;
    drawType(random, call, one.cell);
    const auto candidates = packedCandidates(one.cell, false);
    if (candidates.empty()) continue;
    const Candidate& candidate = candidates[random() % candidates.size()];
    SCOPED_TRACE("round " + std::to_string(round) + ": " + call.describe() + ", " + candidate.name);
    const auto schedule = verify(candidate.build());
    for (const double bytes : one.cell.blockBytes) {
      call.blockCounts.push_back(static_cast<std::uint64_t>(bytes) / sizeOf(call.dtype));
    }
    drawDataOf(random, *schedule, call);
    const auto interpreted = interpretCall(*schedule, call);
    expectOracle(*schedule, call, interpreted);
    VirtualWorld world(one.topology);
    expectExecuted(random, world, schedule, call, interpreted);
    if (HasFailure()) return;
    ++plans;
  }
  EXPECT_GE(plans, kPlans);
  std::printf("%d LP plans verified and executed\n", plans);
}

}  // namespace
}  // namespace byway
