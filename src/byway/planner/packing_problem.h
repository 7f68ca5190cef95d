// SPDX-License-Identifier: BSD-3-Clause
// What the packing LP depends on: the links, and the blocks that have to cross them.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "byway/planner/construction.h"

namespace byway {

inline constexpr double kUnlimitedRate = std::numeric_limits<double>::infinity();
// The price of what does not exist.
inline constexpr double kNoWay = std::numeric_limits<double>::infinity();

// One block, to be split over routes.
struct PackingJob {
  enum class Kind : std::uint8_t {
    Path,    // a move from `source` to `target`
    Tree,    // a move from `source` to all other members
    SumTo,   // the members' contributions, summed, to `target`
    SumAll,  // the members' contributions, summed, to all members
  };
  Kind kind = Kind::Path;
  int block = 0;
  int group = 0;                 // index into PackingProblem::groups
  int source = -1, target = -1;  // ranks
  double size = 0;           // the largest block has size 1; 0: needs a route but no share of links
  double partialWeight = 1;  // of a sum on its way to `target`
};

// Normalised: the fastest link has rate 1, the largest block size 1.
struct PackingProblem {
  int ranks = 0;
  std::vector<double> rates;  // [from * ranks + to]; 0: unusable
  std::vector<double> egress, ingress;
  double bus = kUnlimitedRate;
  bool membersOnly = false;  // data stays on links between members of its group
  std::vector<std::vector<int>> groups;
  std::vector<PackingJob> jobs;
  int hops = 1;        // longest path that is considered
  double fastest = 0;  // bytes/s that rate 1 stands for

  std::size_t link(int from, int to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) +
           static_cast<std::size_t>(to);
  }
  bool usable(int group, int from, int to) const;
};

// Throws Error{InvalidArgument} that names two ranks when some data has no way.
PackingProblem packingProblem(const Cell& cell, bool membersOnly);

}  // namespace byway
