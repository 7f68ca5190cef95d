// SPDX-License-Identifier: BSD-3-Clause
// A cell on the virtual clock: all ranks in one thread, with real memory, so that values are
// compared as in the real run.
#pragma once

#include <memory>
#include <vector>

#include "byway/tools/demo/results.h"

namespace byway::tools {

using Schedules = std::vector<std::shared_ptr<const VerifiedSchedule>>;

// A plan for each communicator's call.
struct PlannedCell {
  Schedules direct, chosen;
  bool relayed = false;
  Seconds predicted = 0, directPredicted = 0;  // of one call by itself
  double gain = 1;  // direct over the best relay that was built, as predicted
};
PlannedCell planCell(const DemoCell& cell, const Topology& topology);
PlannedCell planCell(const DemoCell& cell, const DemoSettings& settings);
PlanEvent planEventOf(const DemoCell& cell, const PlannedCell& planned);

// Of links that are as `links` says.
CellTimes computeTimes(const DemoCell& cell, const Topology& links, const PlannedCell& planned);

// Until the last call is over; no memory is moved.
Seconds virtualTime(const DemoCell& cell, const Topology& links, const Schedules& schedules);

// One run each way, with memory and comparison of values.
CellResult runVirtually(const DemoCell& cell, const Topology& links, const PlannedCell& planned);
CellResult runVirtually(const DemoCell& cell, const DemoSettings& settings);

}  // namespace byway::tools
