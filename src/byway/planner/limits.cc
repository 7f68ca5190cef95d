// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/limits.h"

#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/planner/flow_lp.h"
#include "byway/planner/limit_problem.h"

namespace byway {
namespace {

constexpr double kMostVariables = 4e6;

}  // namespace

double fluidLimit(const LimitRequest& request, const Topology& topology) {
  const auto problem = limitProblem(request, topology);
  if (problem.groups.empty()) return 0;
  requireReachable(problem);
  const double size = flowLpSize(problem);
  if (size > kMostVariables || problem.ranks >= 2047) {
    throw Error(ErrorCode::Resource,
                fmt::format("limit: the flow problem of {} on {} ranks has {:.0f} variables, more "
                            "than the {:.0f} allowed",
                            toString(request.collective), problem.ranks, size, kMostVariables));
  }
  return problem.scale * foldedFlowLp(problem).minimum();
}

}  // namespace byway
