// SPDX-License-Identifier: BSD-3-Clause
#include "byway/schedule/shape.h"

#include <algorithm>
#include <utility>

#include "byway/base/error.h"

namespace byway {
namespace {

// Which blocks of a group stand in a buffer.
enum class Extent { None, Whole, BySource, ByDestination };

Extent inputExtent(Collective collective, bool isRoot) {
  switch (collective) {
    case Collective::AllReduce:
    case Collective::Reduce:
    case Collective::ReduceScatter:
      return Extent::Whole;
    case Collective::Broadcast:
    case Collective::Scatter:
      return isRoot ? Extent::Whole : Extent::None;
    case Collective::AllGather:
    case Collective::Gather:
    case Collective::AllToAll:
      return Extent::BySource;
  }
  return Extent::None;
}

Extent outputExtent(Collective collective, bool isRoot) {
  switch (collective) {
    case Collective::AllReduce:
    case Collective::Broadcast:
    case Collective::AllGather:
      return Extent::Whole;
    case Collective::Reduce:
    case Collective::Gather:
      return isRoot ? Extent::Whole : Extent::None;
    case Collective::ReduceScatter:
    case Collective::Scatter:
    case Collective::AllToAll:
      return Extent::ByDestination;
  }
  return Extent::None;
}

std::vector<int> blocksOf(const Shape& shape, int rank, bool input) {
  const Membership member = membershipOf(shape, rank);
  if (member.group < 0) return {};
  const Group& group = shape.groups[static_cast<std::size_t>(member.group)];
  const bool isRoot = member.position == group.root;
  const Extent extent =
      input ? inputExtent(shape.collective, isRoot) : outputExtent(shape.collective, isRoot);
  const int first = firstBlock(shape, member.group);
  const int count = blocksPerGroup(shape.collective, group.size());
  std::vector<int> result;
  for (int b = first; b < first + count; ++b) {
    const Block& block = shape.blocks[static_cast<std::size_t>(b)];
    const bool mine = extent == Extent::Whole ||
                      (extent == Extent::BySource && block.source == member.position) ||
                      (extent == Extent::ByDestination && block.destination == member.position);
    if (mine) result.push_back(b);
  }
  return result;
}

}  // namespace

int blocksPerGroup(Collective collective, int size) {
  switch (collective) {
    case Collective::AllReduce:
    case Collective::Broadcast:
    case Collective::Reduce:
      return 1;
    case Collective::AllGather:
    case Collective::ReduceScatter:
    case Collective::Scatter:
    case Collective::Gather:
      return size;
    case Collective::AllToAll:
      return size * size;
  }
  return 0;
}

int blockInGroup(Collective collective, int size, int source, int destination) {
  switch (collective) {
    case Collective::AllReduce:
    case Collective::Broadcast:
    case Collective::Reduce:
      return 0;
    case Collective::AllGather:
    case Collective::Gather:
      return source;
    case Collective::ReduceScatter:
    case Collective::Scatter:
      return destination;
    case Collective::AllToAll:
      return source * size + destination;
  }
  return 0;
}

int firstBlock(const Shape& shape, int group) {
  int first = 0;
  for (int g = 0; g < group; ++g) {
    first += blocksPerGroup(shape.collective, shape.groups[static_cast<std::size_t>(g)].size());
  }
  return first;
}

Shape makeShape(Collective collective, int ranks, std::vector<Group> groups) {
  Shape shape{collective, ranks, std::move(groups), {}};
  for (std::size_t g = 0; g < shape.groups.size(); ++g) {
    const Group& group = shape.groups[g];
    const int size = group.size();
    for (int b = 0; b < blocksPerGroup(collective, size); ++b) {
      Block block;
      block.group = static_cast<int>(g);
      switch (collective) {
        case Collective::AllReduce:
          break;
        case Collective::Broadcast:
          block.source = group.root;
          break;
        case Collective::Reduce:
          block.destination = group.root;
          break;
        case Collective::AllGather:
          block.source = b;
          break;
        case Collective::Gather:
          block.source = b;
          block.destination = group.root;
          break;
        case Collective::ReduceScatter:
          block.destination = b;
          break;
        case Collective::Scatter:
          block.source = group.root;
          block.destination = b;
          break;
        case Collective::AllToAll:
          block.source = b / size;
          block.destination = b % size;
          break;
      }
      shape.blocks.push_back(std::move(block));
    }
  }
  return shape;
}

Membership membershipOf(const Shape& shape, int rank) {
  for (std::size_t g = 0; g < shape.groups.size(); ++g) {
    const auto& ranks = shape.groups[g].ranks;
    const auto it = std::find(ranks.begin(), ranks.end(), rank);
    if (it != ranks.end()) return {static_cast<int>(g), static_cast<int>(it - ranks.begin())};
  }
  return {};
}

std::vector<int> inputBlocks(const Shape& shape, int rank) { return blocksOf(shape, rank, true); }
std::vector<int> outputBlocks(const Shape& shape, int rank) { return blocksOf(shape, rank, false); }

}  // namespace byway
