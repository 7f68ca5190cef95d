// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/plan_facts.h"

#include <algorithm>

#include "byway/planner/flow_lp.h"
#include "byway/planner/plan_text.h"

namespace byway {
namespace {

// Of the LP as it is written, and without its symmetries: written in a second, solved in three.
constexpr double kMostWritten = 2e5;
constexpr std::size_t kMostSolved = 12000;

// The size of the group's blocks, if they have one; a rank's block for itself does not move.
std::optional<double> countOf(const PlanRequest& request, const Shape& shape, int group) {
  std::optional<double> result;
  for (std::size_t b = 0; b < shape.blocks.size(); ++b) {
    const auto& block = shape.blocks[b];
    const bool stays = block.source >= 0 && block.source == block.destination;
    if (block.group != group || stays) continue;
    const auto bytes = static_cast<double>(request.blockBytes[b]);
    if (result && *result != bytes) return std::nullopt;
    result = bytes;
  }
  return result.value_or(0);
}

PhaseLoad phaseLoad(const std::vector<double>& links) {
  PhaseLoad result;
  double sum = 0;
  for (const double load : links) {
    if (load <= 0) continue;
    ++result.busy;
    sum += load;
    result.largest = std::max(result.largest, load);
  }
  if (result.busy > 0) result.mean = sum / result.busy;
  return result;
}

}  // namespace

std::optional<Seconds> limitOf(const PlanRequest& request, const Topology& topology) {
  LimitRequest limit;
  limit.collective = request.collective;
  limit.groups = request.groups;
  const auto shape = makeShape(request.collective, request.ranks, request.groups);
  for (std::size_t g = 0; g < request.groups.size(); ++g) {
    const auto count = countOf(request, shape, static_cast<int>(g));
    if (!count) return std::nullopt;
    limit.counts.push_back(*count);
  }
  const auto problem = limitProblem(limit, topology);
  if (problem.groups.empty()) return 0;
  if (flowLpSize(problem) > kMostWritten) return std::nullopt;
  requireReachable(problem);
  const auto lp = foldedFlowLp(problem);
  if (lp.variables() > kMostSolved) return std::nullopt;
  return problem.scale * lp.minimum();
}

PlanFacts factsOf(const Plan& plan, const PlanRequest& request, const Topology& topology) {
  const auto& schedule = plan.chosen->schedule();
  const std::vector<double> bytes(request.blockBytes.begin(), request.blockBytes.end());
  const auto loads = loadsOf(schedule, bytes, request.partialWeight);
  PlanFacts result;
  for (const auto& phase : loads.byPhase) result.phases.push_back(phaseLoad(phase));
  if (!loads.total.empty()) {
    result.busiestLink = *std::max_element(loads.total.begin(), loads.total.end());
  }
  result.stage = stageNeed(schedule, bytes, request.partialWeight);
  result.stageQuota = request.stageQuota;
  if (request.stageQuota > 0) {
    result.rounds = roundsFor(schedule, bytes, request.partialWeight, request.stageQuota).count;
  }
  result.messages = schedule.transfers.size();
  result.limit = limitOf(request, topology);
  result.direct = std::any_of(plan.considered.begin(), plan.considered.end(), [](const auto& one) {
    return one.direct && one.predicted >= 0 && one.predicted < kNever;
  });
  return result;
}

}  // namespace byway
