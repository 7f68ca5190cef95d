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
  double rate = 10e6;  // bytes/s of every directed pair; 0: not slowed
  Seconds latency = 50e-6;
  Seconds timeout = 60;
  Seconds directSeconds = 0.8;  // sizes are chosen so that direct takes so long
  int pairs = 3;
  bool all = false, quick = false;
  std::string cells;  // regular expression on the cells' names; "": all of them

  // Bars hold for the default links and sizes.
  bool barsApply() const;
};

// How the groups make their calls. Single: one group. Fused: one call of all groups. Parallel: each
// group has a communicator of its own, of all ranks, and its calls are under way all together.
// Flat: one group of all ranks, so that nobody can help.
enum class Scenario : std::uint8_t { Single, Fused, Parallel, Flat };
const char* toString(Scenario scenario);

// A link whose rate is not that of the others.
struct UnlikeLink {
  int from = 0, to = 0;
  double part = 1;  // of the usual rate; 0: there is none
};

struct DemoCell {
  int number = 0;  // in its list; inputs depend on it
  Collective collective = Collective::AllReduce;
  Scenario scenario = Scenario::Single;
  int ranks = 8;
  DType dtype = DType::Float32;
  std::vector<Group> groups;
  std::vector<std::uint64_t> counts;  // per group: elements of the collective's unit
  int liveGroups = 0;                 // what the calls state of the parallel ones; 0: nothing
  std::vector<UnlikeLink> unlike;
  std::string linksName;   // in words, where some are unlike: "link 0-1 a quarter"
  std::string countsName;  // where counts are unlike: their ratio, "634:560:553:479"
  double bar = 0;          // the speed-up that is asked for; 0: none
  double barOfLimit = 0;   // the same as a part of the limit; 0: none

  std::uint64_t bytes() const;  // of the largest group's unit
  bool hasMember(int rank) const;
  std::string sizes() const;         // of the groups: "2", "2+3"
  std::string scenarioText() const;  // with what makes it unlike others of the same collective
  // "allreduce A=2 single float32 n=8".
  std::string name() const;
  // Cells of one key run on the same links and ranks, on the same number of communicators.
  std::string communicatorKey() const;
  int communicators() const;
  // Groups of communicator i's call; all of them unless parallel.
  std::vector<std::size_t> groupsOf(int communicator) const;
};

inline constexpr int kDemoRanks = 8;

// Throws Error{InvalidArgument} for a bad expression, or one that matches nothing.
std::vector<DemoCell> demoCells(const DemoSettings& settings);

// The links alone, as they are paced.
Topology demoLinks(const DemoSettings& settings, const DemoCell& cell);
// What the ranks tell the planner: the links, and what this host adds to them.
Topology demoTopology(const DemoSettings& settings, const DemoCell& cell);
// Of each communicator's call.
std::vector<PlanRequest> requestsOf(const DemoCell& cell);

}  // namespace byway::tools
