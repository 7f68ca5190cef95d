// SPDX-License-Identifier: BSD-3-Clause
// One rank's part of a cell: the calls, their times, the comparison of values. Rank 0 prints
// events.
#pragma once

#include <functional>
#include <vector>

#include "byway/tools/demo/oracle.h"
#include "byway/tools/demo/team.h"

namespace byway::tools {

class CellRunner {
 public:
  // Asked before every pair, with direct over chosen of those before; must depend on nothing but
  // its arguments, which are the same on all ranks of the cell.
  using NextPair = std::function<bool(const std::vector<double>& ratios, bool samePlan)>;
  using NextRun = std::function<bool(const std::vector<Seconds>& times)>;

  // All ranks of the team make and run it, also those that take no part. A run is one call, or as
  // many, one after another, as take `sample` seconds in the first run; its time is their median.
  CellRunner(Team& team, const DemoCell& cell, Seconds sample = 0);
  // Direct and chosen in turns.
  void run(const NextPair& more);
  // The chosen way alone.
  void runChosen(const NextRun& more);
  // Tells that there are no more runs.
  void end() const;

 private:
  bool announce();
  std::vector<Communicator::PlanInfo> prepare(const std::vector<Communicator*>& communicators);
  Seconds measure(Way way);
  RunEvent measureOnce(Way way);
  void callAll(const std::vector<Communicator*>& communicators);
  FusedArgs argumentsOf(const std::vector<CallGroup>& groups);
  FusedArgs arguments();
  void print(const std::string& line) const;
  RunEvent eventOf(Way way, Seconds start, const std::vector<RankReport>& reports) const;

  Team& team_;
  const DemoCell& cell_;
  const Seconds sample_;
  int repeats_ = 0;  // calls in a run; 0 before the first
  DemoBuffers buffers_;
  std::vector<Communicator*> direct_, chosen_;
  int calls_ = 0;
};

// Calls of `one` seconds that fill a sample, from 1 to 32.
int repeatsFor(Seconds one, Seconds sample);

}  // namespace byway::tools
