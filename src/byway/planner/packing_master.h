// SPDX-License-Identifier: BSD-3-Clause
// The packing LP: how much of each block takes which route, so that the busiest link is done first.
#pragma once

#include <vector>

#include "byway/planner/packing_routes.h"

namespace byway {

struct PackingOptions {
  double gap = 0.002;  // of the optimum, at which the search for routes ends
  int rounds = 200;    // of it, at most
  int patience = 20;   // rounds without a gain of `gap`, at most
  int stages = 32;     // K for which routes are looked for
};

// A schedule of K stages: amounts[i] of route i.
struct Packing {
  int stages = 0;
  double time = 0;  // K times the longest load of a stage, in the problem's unit
  std::vector<double> amounts;
};

// Routes that were worth looking at, and their best mix for any number of stages.
struct PackedRoutes {
  std::vector<PackingRoute> routes;
  Packing packing;   // for PackingOptions::stages
  double bound = 0;  // no mix of any routes takes less time with so many stages; 0: not known
  int rounds = 0;
};

PackedRoutes packRoutes(const PackingProblem& problem, const PackingOptions& options = {});

// The best mix of given routes. Without amounts when they do not fit into so many stages.
Packing repack(const PackingProblem& problem, const std::vector<PackingRoute>& routes, int stages);

// The time of given amounts.
double packedTime(const PackingProblem& problem, const std::vector<PackingRoute>& routes,
                  const Packing& packing);

}  // namespace byway
