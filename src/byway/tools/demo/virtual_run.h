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
};
PlannedCell planCell(const DemoCell& cell, const DemoSettings& settings);

// Until the last call is over; no memory is moved.
Seconds virtualTime(const DemoCell& cell, const Topology& links, const Schedules& schedules);

CellResult runVirtually(const DemoCell& cell, const DemoSettings& settings);

}  // namespace byway::tools
