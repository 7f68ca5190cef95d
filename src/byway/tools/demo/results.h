// SPDX-License-Identifier: BSD-3-Clause
// What the demo's runs add up to: rows, checks, JSON.
#pragma once

#include <string>
#include <vector>

#include "byway/tools/demo/cells.h"
#include "byway/tools/demo/events.h"

namespace byway::tools {

// What is known of a cell before it runs.
struct CellTimes {
  Seconds limit = 0;                               // no schedule is faster
  Seconds directLink = 0;                          // the best that links between members allow
  Seconds directComputed = 0, chosenComputed = 0;  // on a virtual clock, to the last event
};
CellTimes computeTimes(const DemoCell& cell, const DemoSettings& settings);

struct CellResult {
  DemoCell cell;
  CellTimes times;
  PlanEvent plan;
  std::vector<RunEvent> direct, chosen;

  bool complete(int pairs) const;
  Seconds directMedian() const;
  Seconds chosenMedian() const;
  double speedup() const;  // median of the pairs' ratios
  std::pair<double, double> interval()
      const;  // of the pairs' ratios: from the least to the largest
  double limit() const { return times.directLink / times.limit; }
  double bar() const;  // the speed-up that is asked for; 0: none
  bool samePlan() const { return plan.hash == plan.directHash; }
  bool verified() const;  // every value of every run was compared and right
  std::uint64_t wrong() const;
  std::uint64_t helperStage() const;
};

double median(std::vector<double> values);

struct Check {
  std::string name;
  bool held = true;
  bool failing = true;              // the command fails where it is not held
  std::vector<std::string> missed;  // where not
};

struct DemoResults {
  DemoSettings settings;
  bool onVirtualClock = false;
  std::vector<CellResult> cells;
  double coresIdle = -1;  // share of all cores while ranks communicated; -1: not measured

  std::vector<Check> checks() const;
  std::string toJson() const;
};

}  // namespace byway::tools
