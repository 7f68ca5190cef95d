// SPDX-License-Identifier: BSD-3-Clause
// The cost model: how long a schedule takes on a topology, by following its messages through links
// that serve one message at a time in the order in which they were matched.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "byway/base/clock.h"
#include "byway/planner/topology.h"
#include "byway/schedule/verify.h"

namespace byway {

// Seconds until the last rank has finished. blockBytes: bytes of each block (rounded down to whole
// ones). Port and bus limits enter as lower bounds. A transfer over
// a missing link gives infinity.
Seconds predict(const Schedule& schedule, const DependenceGraph& graph, const Topology& topology,
                std::span<const double> blockBytes, double partialWeight);

// The same for a call that stage memory of `quota` bytes a rank may cut into rounds (0: no limit):
// the first takes its time, each further one what the busiest link or rank needs for it, but at
// least what lies between two rounds in step and two that fill each other's waits. Infinity where
// the quota is too small.
Seconds predictWithin(std::uint64_t quota, const Schedule& schedule, const DependenceGraph& graph,
                      const Topology& topology, std::span<const double> blockBytes,
                      double partialWeight);

}  // namespace byway
