// SPDX-License-Identifier: BSD-3-Clause
// The columns of the packing LP: whole routes of a block, and the search for the cheapest ones.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "byway/planner/packing_paths.h"
#include "byway/planner/packing_problem.h"

namespace byway {

// A way for any amount of a block. In a schedule of K stages it takes K - depth + 1 equal pieces,
// so that in a stage in which all links are busy it loads them K / (K - depth + 1) times as much as
// if it were there all the time.
struct PackingRoute {
  std::size_t job = 0;
  int depth = 0;                                      // stages that one piece takes
  Slice slice;                                        // stages count from 0
  std::vector<std::pair<std::size_t, double>> loads;  // links, for an amount of 1; ascending
};

// kNoWay where a route does not fit into so many stages.
inline double pipelineFactor(int stages, int depth) {
  return depth > stages ? kNoWay : static_cast<double>(stages) / (stages - depth + 1);
}

// One raw contribution of each other member to `at` and the sum from there; all moves likewise.
// Fills in depth and loads.
PackingRoute finishedRoute(const PackingProblem& problem, std::size_t job, Slice slice);

// Routes of one hop, or of one rank in between, wherever the links exist.
std::vector<PackingRoute> plainRoutes(const PackingProblem& problem);

// The cheapest routes at given prices of links.
class RouteSearch {
 public:
  RouteSearch(const PackingProblem& problem, std::vector<double> linkPrices, int stages);

  struct Found {
    double cost;  // for an amount of 1, with the pipeline's factor
    PackingRoute route;
  };
  // Whether no routes are cheaper than those that are found.
  static bool exact(const PackingProblem& problem);
  // Of a job: the cheapest for each rank that may sum (just one for moves). Empty: none is short
  // enough.
  std::vector<Found> cheapest(std::size_t job) const;

 private:
  struct Group {
    LinkPrices prices;
    PathTable paths;
    std::vector<TreeTable> trees;  // one, or none where none is asked for
  };
  struct Way {
    double cost = kNoWay;
    int in = 0, out = 0;  // hops at most
  };
  Way wayOut(const PackingJob& job, const Group& group, int from) const;
  Way wayThrough(const PackingJob& job, const Group& group, int at) const;
  Slice move(const PackingJob& job, const Group& group, const Way& way) const;
  Slice sum(const PackingJob& job, const Group& group, const Way& way, int at) const;
  double costIn(const PackingJob& job, const Group& group, int at, int hops) const;
  double costOut(const PackingJob& job, const Group& group, int from, int hops) const;
  std::vector<Hop> hopsOut(const PackingJob& job, const Group& group, int from, int hops) const;

  const PackingProblem& problem_;
  int stages_;
  std::vector<Group> groups_;
};

}  // namespace byway
