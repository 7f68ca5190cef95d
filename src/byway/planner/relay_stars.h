// SPDX-License-Identifier: BSD-3-Clause
// The pattern of S0, S4 and S5: every block goes partly direct and partly through each helper, by
// two hops.
#pragma once

#include <vector>

#include "byway/planner/builders.h"

namespace byway {

// Sizes for a block of size 1. direct[k] crosses in stage k; relayed[k] goes up to each helper in
// stage k and comes down in stage k + 1.
struct StageSizes {
  std::vector<double> direct, relayed;
};

// All blocks of the live groups that cross a link (all-gather, gather, reduce-scatter, scatter,
// all-to-all). A helper sums what it gets for one owner.
void addStars(SliceList& list, const Cell& cell, const StageSizes& sizes);

// Slices that meet on one link: on the way up from a member to a helper, on the way down from a
// helper to a member (`partials` weighs those that a helper sums).
struct StarFan {
  double up = 1, down = 1;
};
StarFan starFan(Collective collective, int members, double partials);

// Messages that the busiest rank sends: `direct` and `relayed` are numbers of stages that carry
// such slices, `otherGroups` the number of groups that it helps besides.
int starMessages(Collective collective, int members, int helpers, int direct, int relayed,
                 int otherGroups);

// Slots: see moveRing; `size`: the largest slice.
int starRing(Collective collective, int members, double size);

}  // namespace byway
