// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/relay_trees.h"

#include <algorithm>
#include <cmath>

namespace byway {

double treeStage(int relays, int stages, int once, double weight, int stage) {
  const double first = 1 / (relays * geometricSum(1, weight, stages - 1) + once + 1);
  return first * std::pow(weight, stage);
}

void addThrough(SliceList& list, const Through& through, double size) {
  const Group& group = list.group(through.group);
  const int block = list.block(through.group);
  const int root = group.ranks[static_cast<std::size_t>(group.root)];
  const bool member =
      std::find(group.ranks.begin(), group.ranks.end(), through.relay) != group.ranks.end();
  if (list.shape().collective == Collective::Broadcast) {
    Slice& slice = list.move(block, size, through.lane, member);
    slice.out.push_back({root, through.relay, through.stage});
    distribute(slice, group, through.relay, through.stage + 1, root);
    return;
  }
  Slice& slice = list.sumAt(through.relay, block, size, through.lane, member);
  for (const int r : group.ranks) {
    if (r != root && r != through.relay) slice.in.push_back({r, {r, through.relay, through.stage}});
  }
  slice.out = {{through.relay, root, through.stage + 1}};
}

void addTree(SliceList& list, const RelayTree& tree, double weight) {
  const Group& group = list.group(tree.group);
  const int root = group.ranks[static_cast<std::size_t>(group.root)];
  const int relays = static_cast<int>(tree.relays.size());
  const bool broadcasts = list.shape().collective == Collective::Broadcast;
  const auto chunk = [&](int stage) {
    return treeStage(relays, tree.stages, tree.once >= 0 ? 1 : 0, weight, stage);
  };
  const int direct = list.newLane();
  if (broadcasts) {
    distribute(list.move(list.block(tree.group), chunk(0), direct, true), group, root,
               tree.stages - 1);
  } else {
    contribute(list.sumAt(root, list.block(tree.group), chunk(0), direct, true), group, root, 0);
  }
  for (const int relay : tree.relays) {
    const int lane = list.newLane();
    for (int stage = 0; stage + 1 < tree.stages; ++stage) {
      addThrough(list, {tree.group, relay, lane, stage}, chunk(stage));
    }
  }
  if (tree.once >= 0) {
    addThrough(list, {tree.group, tree.once, list.newLane(), broadcasts ? tree.stages - 2 : 0},
               chunk(0));
  }
}

}  // namespace byway
