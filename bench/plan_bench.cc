// SPDX-License-Identifier: BSD-3-Clause
// What a call pays before its first byte: planning, verifying, binding, finding a plan again.
// Budgets at n = 8: plan cold 5 ms, by the packing LP 200 ms, bind 5 us direct and 50 us relayed, a
// cached plan 1 us. Each benchmark has the counter of_budget: its time over its budget.
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "byway/comm/plan_cache.h"
#include "byway/planner/construction.h"
#include "byway/schedule/bind.h"

namespace byway {
namespace {

constexpr int kRanks = 8;
constexpr std::uint64_t kElements = std::uint64_t{16} << 20;  // a block, float32

constexpr double kPlanBudget = 5e-3, kPackingBudget = 200e-3, kCachedBudget = 1e-6;
constexpr double kDirectBindBudget = 5e-6, kRelayedBindBudget = 50e-6;

// The mean time over the budget: one over how often the budget fits an iteration.
void holdAgainst(benchmark::State& state, double budget) {
  using benchmark::Counter;
  state.counters["of_budget"] =
      Counter(budget, Counter::kIsIterationInvariantRate | Counter::kInvert);
}

struct Case {
  const char* name;  // of the benchmark
  Collective collective;
  int members;  // ranks 0 .. members - 1, or as many groups of them as fit
  bool fused;
  const char* candidate;
};

constexpr Case kCases[] = {
    {"allreduce_direct_A8", Collective::AllReduce, 8, false, "direct"},
    {"allgather_direct_A8", Collective::AllGather, 8, false, "direct"},
    {"alltoall_direct_A8", Collective::AllToAll, 8, false, "direct"},
    {"allreduce_S3_K24_A4", Collective::AllReduce, 4, false, "S3 K=24"},
    {"allreduce_S3_K48_A2", Collective::AllReduce, 2, false, "S3 K=48"},
    {"allreduce_S0_A2", Collective::AllReduce, 2, true, "S0"},
    {"allgather_S4_A4", Collective::AllGather, 4, false, "S4"},
    {"alltoall_S5_A4", Collective::AllToAll, 4, false, "S5 K=16"},
    {"alltoall_S6_A4", Collective::AllToAll, 4, true, "S6"},
};

std::vector<Group> groupsOf(const Case& c) {
  std::vector<Group> groups;
  for (int first = 0; first + c.members <= (c.fused ? kRanks : c.members); first += c.members) {
    Group group{std::vector<int>(static_cast<std::size_t>(c.members)), 0};
    std::iota(group.ranks.begin(), group.ranks.end(), first);
    groups.push_back(std::move(group));
  }
  return groups;
}

const Topology& mesh() {
  static const Topology topology = meshTopology(kRanks, 50e9, 4e-6);
  return topology;
}

Cell cellOf(const Case& c) {
  Cell cell;
  cell.collective = c.collective;
  cell.ranks = kRanks;
  cell.groups = groupsOf(c);
  const auto blocks = makeShape(c.collective, kRanks, cell.groups).blocks.size();
  cell.blockBytes.assign(blocks, static_cast<double>(kElements * 4));
  cell.topology = &mesh();
  return cell;
}

// The last candidate whose name begins as the case says.
Schedule scheduleOf(const Case& c) {
  const Cell cell = cellOf(c);
  Candidate found;
  for (const Construction& construction : constructions()) {
    for (Candidate& candidate : construction.candidates(cell)) {
      const bool direct = std::string_view(c.candidate) == "direct" && candidate.direct;
      if (direct || candidate.name.starts_with(c.candidate)) found = std::move(candidate);
    }
  }
  if (!found.build) throw std::runtime_error(std::string("no candidate ") + c.candidate);
  return found.build();
}

void verifying(benchmark::State& state, const Case& c) {
  const Schedule schedule = scheduleOf(c);
  for (auto _ : state) benchmark::DoNotOptimize(verify(schedule));
  state.SetLabel(schedule.name);
  state.counters["transfers"] = static_cast<double>(schedule.transfers.size());
  state.counters["steps"] = static_cast<double>(schedule.steps.size());
}

void binding(benchmark::State& state, const Case& c) {
  const auto verified = verify(scheduleOf(c));
  std::vector<std::uint64_t> counts(verified->schedule().shape.blocks.size(), kElements);
  for (auto _ : state) {
    ++counts[0];  // no count is as it was
    benchmark::DoNotOptimize(bind(*verified, 0, {counts, {}, {}}, 4, 4));
  }
  state.SetLabel(verified->schedule().name);
  holdAgainst(state,
              std::string_view(c.candidate) == "direct" ? kDirectBindBudget : kRelayedBindBudget);
}

void planningCold(benchmark::State& state, const Case& c) {
  PlanRequest request;
  request.collective = c.collective;
  request.ranks = kRanks;
  request.groups = groupsOf(c);
  const auto blocks = makeShape(c.collective, kRanks, request.groups).blocks.size();
  std::string chosen;
  for (auto _ : state) {
    request.blockBytes.assign(blocks, static_cast<std::uint64_t>(state.range(0)));
    const Plan made = plan(request, mesh());
    chosen = made.chosen->schedule().name;
  }
  state.SetLabel(chosen);
  holdAgainst(state, kPlanBudget);
}

// What only the packing LP can serve.
struct Irregular {
  const char* name;
  Collective collective;
  std::vector<Group> groups;
  std::vector<std::uint64_t> blocks;  // relative
  int slowFrom, slowTo;               // a link of a quarter of the rate; -1: none
};

const Irregular kIrregular[] = {
    {"allreduce_A3_fused", Collective::AllReduce, {{{0, 1, 2}}, {{3, 4, 5}}}, {1, 1}, -1, -1},
    {"alltoall_A3_fused",
     Collective::AllToAll,
     {{{0, 1, 2}}, {{3, 4, 5}}},
     std::vector<std::uint64_t>(18, 1),
     -1,
     -1},
    {"allgather_2+3", Collective::AllGather, {{{0, 1}}, {{2, 3, 4}}}, {1, 1, 1, 1, 1}, -1, -1},
    {"allreduce_634:560:553:479",
     Collective::AllReduce,
     {{{0, 1}}, {{2, 3}}, {{4, 5}}, {{6, 7}}},
     {634, 560, 553, 479},
     -1,
     -1},
    {"reducescatter_A5_slow_link",
     Collective::ReduceScatter,
     {{{0, 1, 2, 3, 4}}},
     {1, 1, 1, 1, 1},
     0,
     1},
    {"allreduce_A4_fused_slow_link",
     Collective::AllReduce,
     {{{0, 1, 2, 3}}, {{4, 5, 6, 7}}},
     {1, 1},
     0,
     5},
    {"alltoall_A4_slow_link",
     Collective::AllToAll,
     {{{0, 1, 2, 3}}},
     std::vector<std::uint64_t>(16, 1),
     0,
     1},
};

void planningByPacking(benchmark::State& state, const Irregular& c) {
  Topology topology = mesh();
  if (c.slowFrom >= 0) {
    topology.links[static_cast<std::size_t>(c.slowFrom * kRanks + c.slowTo)] /= 4;
  }
  PlanRequest request;
  request.collective = c.collective;
  request.ranks = kRanks;
  request.groups = c.groups;
  for (const auto block : c.blocks) request.blockBytes.push_back(block * kElements * 4);
  std::string chosen;
  for (auto _ : state) {
    const Plan made = plan(request, topology);
    chosen = made.chosen->schedule().name;
  }
  state.SetLabel(chosen);
  holdAgainst(state, kPackingBudget);
}

void findingAgain(benchmark::State& state, const Case& c) {
  PlanCache cache(mesh(), "");
  const std::vector<Group> groups = groupsOf(c);
  const auto blocks = makeShape(c.collective, kRanks, groups).blocks.size();
  const std::vector<std::uint64_t> counts(blocks, kElements);
  const PlanQuery query{c.collective, groups, counts, 4, 4, 1};
  for (auto _ : state) benchmark::DoNotOptimize(cache.get(query));
  holdAgainst(state, kCachedBudget);
}

[[maybe_unused]] const bool kRegistered = [] {
  const auto name = [](const char* what, const Case& c) {
    return std::string(what) + "/" + c.name;
  };
  for (const Case& c : kCases) {
    benchmark::RegisterBenchmark(name("verify", c).c_str(), verifying, c);
    benchmark::RegisterBenchmark(name("bind", c).c_str(), binding, c);
    benchmark::RegisterBenchmark(name("plan", c).c_str(), planningCold, c)
        ->Arg(64 << 10)
        ->Arg(4 << 20)
        ->Arg(256 << 20)
        ->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark(name("cached", c).c_str(), findingAgain, c);
  }
  for (const Irregular& c : kIrregular) {
    benchmark::RegisterBenchmark((std::string("packing/") + c.name).c_str(), planningByPacking, c)
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace byway
