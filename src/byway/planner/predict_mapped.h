// SPDX-License-Identifier: BSD-3-Clause
// The cost model of mapped phases on one host.
#pragma once

#include <span>

#include "byway/base/clock.h"
#include "byway/planner/topology.h"
#include "byway/schedule/schedule.h"

namespace byway {

// Seconds of a schedule whose phases are all mapped. Each phase takes what the ranks need to notice
// each other, more where they share cores; cores share what is published once and read by each.
Seconds predictMapped(const Schedule& schedule, const Topology& topology,
                      std::span<const double> blockBytes, double partialWeight, bool coresForAll);

// What a schedule of messages costs there beyond predict(), so that the two can be compared: the
// executor's own part of each message, and its sums.
Seconds costOfMessages(const Schedule& schedule, const Topology& topology,
                       std::span<const double> blockBytes, double partialWeight);

}  // namespace byway
