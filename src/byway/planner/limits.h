// SPDX-License-Identifier: BSD-3-Clause
// The lower bound on a collective's time that no schedule can pass: the fluid limit, by a flow LP.
#pragma once

#include <span>
#include <vector>

#include "byway/planner/topology.h"
#include "byway/schedule/shape.h"

namespace byway {

struct LimitRequest {
  Collective collective = Collective::AllReduce;
  std::vector<Group> groups;
  std::vector<double> counts;  // per group, relative; empty: all 1. The unit is the whole count for
                               // allreduce, broadcast, reduce; a rank's block for reduce-scatter,
                               // all-gather, scatter, gather; a pair's segment for all-to-all
  bool direct = false;         // only links between members of one group
};

// Least time in (unit of count in bytes) / (bytes/s), with the topology's link, port and bus rates
// (fixed costs do not enter). Store-and-forward with copying and summing, no coding across data.
// Throws Error{InvalidArgument} when some member cannot be reached.
double fluidLimit(const LimitRequest& request, const Topology& topology);

}  // namespace byway
