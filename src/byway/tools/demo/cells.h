// SPDX-License-Identifier: BSD-3-Clause
// What the demo measures: its settings and its list of cells.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "byway/base/clock.h"
#include "byway/base/types.h"
#include "byway/planner/planner.h"
#include "byway/planner/topology.h"
#include "byway/schedule/shape.h"

namespace byway::tools {

struct DemoSettings {
  double rate = 10e6;  // bytes/s of every directed pair
  Seconds latency = 50e-6;
  Seconds directSeconds = 0.8;  // sizes are chosen so that direct takes so long
  int pairs = 3;
  bool all = false, quick = false;
  std::string cells;  // regular expression on the cells' names; "": all of them

  // Bars hold for the default links and sizes.
  bool barsApply() const;
};

struct DemoCell {
  int number = 0;  // in its list; inputs depend on it
  Collective collective = Collective::AllReduce;
  int active = 2;
  bool fused = false;
  int ranks = 8;
  DType dtype = DType::Float32;
  std::uint64_t count = 0;  // elements of the collective's unit
  std::vector<Group> groups;
  double bar = 0;  // the speed-up that is asked for; 0: none

  const char* scenario() const { return fused ? "fused" : "single"; }
  std::uint64_t bytes() const { return count * sizeOf(dtype); }
  bool hasMember(int rank) const;
  // "allreduce A=2 single float32 n=8".
  std::string name() const;
};

inline constexpr int kDemoRanks = 8;

// Throws Error{InvalidArgument} for a bad expression, or one that matches nothing.
std::vector<DemoCell> demoCells(const DemoSettings& settings);

// The links alone, as they are paced.
Topology demoLinks(const DemoSettings& settings, int ranks);
// What the ranks tell the planner: the links, and what this host adds to them.
Topology demoTopology(const DemoSettings& settings, int ranks);
PlanRequest requestOf(const DemoCell& cell);

}  // namespace byway::tools
