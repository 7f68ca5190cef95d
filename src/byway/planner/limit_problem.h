// SPDX-License-Identifier: BSD-3-Clause
// What a fluid limit depends on, in the one form that the flow LP is written from, and the
// symmetries of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "byway/planner/limits.h"

namespace byway {

// Normalised: the fastest link has rate 1, the largest count is 1. Reduce-scatter, reduce and
// gather are the time reverses of all-gather, broadcast and scatter, so they stand as those with
// every link and port turned round.
struct LimitProblem {
  enum class Pattern : std::uint8_t {
    Sums,    // every member's contribution, summed, to every member
    Copies,  // every source's data to all other members
    Pieces,  // a piece of its own from every source to every other member
  };
  struct Link {
    int from, to;
    double rate;
  };
  struct Part {
    std::vector<int> members;
    std::vector<int> sources;
    double count;
  };

  int ranks = 0;
  Pattern pattern = Pattern::Copies;
  bool direct = false;
  std::vector<Link> links;  // usable ones
  std::vector<double> egress, ingress;
  double bus = 0;
  std::vector<Part> groups;  // with traffic only
  double scale = 0;          // limit = scale * the normalised one

  // What a group may use: everything, or for `direct` what lies between its members.
  std::vector<int> nodesOf(int group) const;
  std::vector<std::size_t> linksOf(int group) const;
};

// Throws Error{InvalidArgument} for a request that makes no sense.
LimitProblem limitProblem(const LimitRequest& request, const Topology& topology);

// Throws Error{InvalidArgument} naming two ranks when some data has no way.
void requireReachable(const LimitProblem& problem);

// A renaming of ranks and groups that changes nothing.
struct LimitSymmetry {
  std::vector<int> rank;
  std::vector<int> group;
};

// Exchanges of two ranks and of two groups that are symmetries (not all symmetries: any set
// serves).
std::vector<LimitSymmetry> symmetriesOf(const LimitProblem& problem);

}  // namespace byway
