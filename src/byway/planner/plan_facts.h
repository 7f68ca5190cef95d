// SPDX-License-Identifier: BSD-3-Clause
// What explain() and planToJson() both say about a plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "byway/planner/planner.h"
#include "byway/schedule/loads.h"

namespace byway {

// The links of a phase, in bytes.
struct PhaseLoad {
  double largest = 0;
  double mean = 0;  // of links that carry anything
  int busy = 0;     // how many do
  bool operator==(const PhaseLoad&) const = default;
};

struct PlanFacts {
  std::vector<PhaseLoad> phases;
  double busiestLink = 0;    // bytes over the whole schedule
  StageNeed stage;           // bytes, if it all runs at once
  std::uint32_t rounds = 1;  // in which it runs
  std::uint64_t stageQuota = 0;
  std::size_t messages = 0;
  std::optional<Seconds> limit;
  bool direct = true;  // false: members' own links do not suffice, Plan::direct is a relay
};

PlanFacts factsOf(const Plan& plan, const PlanRequest& request, const Topology& topology);

}  // namespace byway
