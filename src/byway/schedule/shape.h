// SPDX-License-Identifier: BSD-3-Clause
// Who takes part in a collective, and how each rank's buffers divide into blocks and shares.
#pragma once

#include <cstdint>
#include <vector>

#include "byway/base/types.h"

namespace byway {

// Members by their rank in the communicator; the position in the list is the rank in the group.
struct Group {
  std::vector<int> ranks;
  int root = 0;  // position in `ranks`; used by collectives with a root

  int size() const { return static_cast<int>(ranks.size()); }
  bool operator==(const Group&) const = default;
};

// Shares are integers out of kWhole, so that every rank cuts a block at the same places.
inline constexpr std::uint64_t kWhole = std::uint64_t{1} << 32;

// A region of a buffer that has one source and one destination in its group (positions in the
// group, -1 where every member is): allreduce, broadcast and reduce have one block a group,
// all-gather and gather one per source, reduce-scatter and scatter one per destination, all-to-all
// one per pair, ordered by source, then destination.
struct Block {
  int group = 0;
  int source = -1;
  int destination = -1;
  std::vector<std::uint64_t> shares{kWhole};  // sums to kWhole
  // The first `directShares` of them travel by the direct way. A block too small to give every
  // share its 64 bytes is cut among these alone.
  int directShares = 1;

  bool operator==(const Block&) const = default;
};

struct Shape {
  Collective collective = Collective::AllReduce;
  int ranks = 0;              // of the communicator: members and helpers
  std::vector<Group> groups;  // disjoint
  std::vector<Block> blocks;  // group by group, in the order stated at Block

  bool operator==(const Shape&) const = default;
};

// A shape with its blocks, each one share.
Shape makeShape(Collective collective, int ranks, std::vector<Group> groups);

// Where a rank stands: its group and its position in it, or {-1, -1} for a helper.
struct Membership {
  int group = -1;
  int position = -1;
};
Membership membershipOf(const Shape& shape, int rank);

// The number of blocks of a group of `size` members, and the index of one within the group.
int blocksPerGroup(Collective collective, int size);
int blockInGroup(Collective collective, int size, int source, int destination);
// Index of a group's first block in shape.blocks.
int firstBlock(const Shape& shape, int group);

// The blocks that make up a rank's Input and Output, in buffer order. Empty for helpers.
std::vector<int> inputBlocks(const Shape& shape, int rank);
std::vector<int> outputBlocks(const Shape& shape, int rank);

}  // namespace byway
