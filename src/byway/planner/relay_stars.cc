// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/relay_stars.h"

#include <algorithm>

namespace byway {
namespace {

// What one block needs to know of its group.
struct Star {
  const Group& group;
  const std::vector<int>& helpers;
  int block;
  int source, destination;  // ranks; -1: every member
};

void deliver(Slice& slice, const Star& star, int from, int stage) {
  if (star.destination >= 0) {
    slice.out.push_back({from, star.destination, stage});
  } else {
    distribute(slice, star.group, from, stage, star.source);
  }
}

void addMoved(SliceList& list, const Star& star, const StageSizes& sizes) {
  const int lane = list.newLane();
  for (std::size_t k = 0; k < sizes.direct.size(); ++k) {
    deliver(list.move(star.block, sizes.direct[k], lane, true), star, star.source,
            static_cast<int>(k));
  }
  for (const int helper : star.helpers) {
    const int through = list.newLane();
    for (std::size_t k = 0; k < sizes.relayed.size(); ++k) {
      const int stage = static_cast<int>(k);
      Slice& slice = list.move(star.block, sizes.relayed[k], through);
      slice.out.push_back({star.source, helper, stage});
      deliver(slice, star, helper, stage + 1);
    }
  }
}

void addSummed(SliceList& list, const Star& star, const StageSizes& sizes) {
  const int owner = star.destination;
  const int lane = list.newLane();
  for (std::size_t k = 0; k < sizes.direct.size(); ++k) {
    contribute(list.sumAt(owner, star.block, sizes.direct[k], lane, true), star.group, owner,
               static_cast<int>(k));
  }
  for (const int helper : star.helpers) {
    const int through = list.newLane();
    for (std::size_t k = 0; k < sizes.relayed.size(); ++k) {
      const int stage = static_cast<int>(k);
      Slice& slice = list.sumAt(helper, star.block, sizes.relayed[k], through);
      for (const int r : star.group.ranks) {
        if (r != owner) slice.in.push_back({r, {r, helper, stage}});
      }
      slice.out = {{helper, owner, stage + 1}};
    }
  }
}

}  // namespace

void addStars(SliceList& list, const Cell& cell, const StageSizes& sizes) {
  for (const int g : cell.live()) {
    const Group& group = list.group(g);
    const std::vector<int> helpers = cell.helpersOf(g);
    const auto rankAt = [&](int p) {
      return p < 0 ? -1 : group.ranks[static_cast<std::size_t>(p)];
    };
    const int first = list.block(g);
    for (int b = first; b < first + blocksPerGroup(cell.collective, group.size()); ++b) {
      const Block& block = list.shape().blocks[static_cast<std::size_t>(b)];
      if (block.source == block.destination) continue;
      const Star star{group, helpers, b, rankAt(block.source), rankAt(block.destination)};
      if (reduces(cell.collective)) {
        addSummed(list, star, sizes);
      } else {
        addMoved(list, star, sizes);
      }
    }
  }
}

StarFan starFan(Collective collective, int members, double partials) {
  const double others = members - 1;
  switch (collective) {
    case Collective::AllGather:
    case Collective::Gather:
      return {1, others};
    case Collective::ReduceScatter:
      return {others, partials};
    case Collective::Scatter:
      return {others, 1};
    case Collective::AllToAll:
      return {others, others};
    case Collective::AllReduce:
    case Collective::Broadcast:
    case Collective::Reduce:
      break;
  }
  return {};
}

int starMessages(Collective collective, int members, int helpers, int direct, int relayed,
                 int otherGroups) {
  // A gather's members send to one peer and come down at the other groups' roots; a scatter's
  // helpers come down at all members but those.
  const bool gather = collective == Collective::Gather;
  const int peers = gather ? 1 : members - 1;
  const bool rooted = gather || collective == Collective::Scatter;
  const int down = rooted ? peers : members;
  return peers * direct + (helpers + otherGroups * down) * relayed;
}

int starRing(Collective collective, int members, double size) {
  if (collective == Collective::ReduceScatter && members > 2) return 3;
  const int others = members - 1;
  int lanes = others;  // one for each block that passes through a helper
  if (collective == Collective::AllGather || collective == Collective::ReduceScatter)
    lanes = members;
  if (collective == Collective::AllToAll) lanes = members * others;
  return moveRing(size / others, lanes);  // a message: a block for each other member
}

}  // namespace byway
