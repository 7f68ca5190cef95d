// SPDX-License-Identifier: BSD-3-Clause
// Plans for people and for other programs.
#pragma once

#include <optional>
#include <string>

#include "byway/planner/planner.h"

namespace byway {

// The least time that the flow LP proves for the request: nothing where a group's blocks differ in
// size (the LP has one count a group) or the LP would take longer than some seconds.
std::optional<Seconds> limitOf(const PlanRequest& request, const Topology& topology);

// Candidates, the choice, its predicted time, fraction of the limit, loads phase by phase and stage
// memory.
std::string explain(const Plan& plan, const PlanRequest& request, const Topology& topology);

// The same as {"byway": "plan", "version": 1, ...}.
std::string planToJson(const Plan& plan, const PlanRequest& request, const Topology& topology);

// A picture for Graphviz: one row of ranks per phase, an arrow per transfer.
std::string toDot(const Schedule& schedule);

}  // namespace byway
