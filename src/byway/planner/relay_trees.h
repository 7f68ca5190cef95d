// SPDX-License-Identifier: BSD-3-Clause
// The pattern of S7, shared with the direct broadcast and reduce: a root and its relays.
#pragma once

#include <vector>

#include "byway/planner/builders.h"

namespace byway {

// Chunks of one group's block pass through each relay, stage by stage. `once` is a relay that
// takes a single chunk (-1: none): at the end of a broadcast, at the beginning of a reduce.
struct RelayTree {
  int group = 0;
  std::vector<int> relays;
  int stages = 2;
  int once = -1;
};

// Length of stage `stage` for a block of size 1: relays * chunks + once + the direct chunk fill the
// block; chunks grow by `weight`, since a relay's partial sums weigh that much on its link.
double treeStage(int relays, int stages, int once, double weight, int stage);

// One chunk through one relay, for broadcast and reduce: in at `stage`, out in the next.
struct Through {
  int group, relay, lane, stage;
};
void addThrough(SliceList& list, const Through& through, double size);

// A broadcast (weight 1) or a reduce.
void addTree(SliceList& list, const RelayTree& tree, double weight);

}  // namespace byway
