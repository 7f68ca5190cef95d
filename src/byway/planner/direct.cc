// SPDX-License-Identifier: BSD-3-Clause
// Direct: only links between members of one group; any cell.
//
//   allreduce   exchange P=n      every pair swaps piece k in stage k, each member sums: value 1
//               two-shot P=n      stage k: RS of piece k, AG of piece k-1; stages 1/P of
//                                 (1 2 2 ... 2 1) / A: value 2/A (docs/schedules.md, 3.1)
//   reduce-scatter, reduce P=n    piece k of each block to its owner in stage k: value 1
//   all-gather, all-to-all, broadcast, scatter, gather: one stage, value 1
//   broadcast, reduce K=n         S7 with the group's own members as relays: K / ((A-1)(K-1) + 1)
//
// Pieces cost messages and gain what sums would take after the last byte, and stage memory.
#include <algorithm>

#include "byway/planner/builders.h"
#include "byway/planner/constructions.h"
#include "byway/planner/relay_trees.h"

namespace byway {
namespace {

// The largest size(group, block) over the blocks that cross a link, where the cell's largest block
// has size 1; `scale` is what the construction makes of a group's blocks.
template <typename Scale>
double largest(const Cell& cell, const Scale& scale) {
  const Shape shape = makeShape(cell.collective, cell.ranks, cell.groups);
  double unit = 0, value = 0;
  for (std::size_t b = 0; b < shape.blocks.size(); ++b) {
    const double bytes = b < cell.blockBytes.size() ? cell.blockBytes[b] : 1;
    const Block& block = shape.blocks[b];
    const Group& group = shape.groups[static_cast<std::size_t>(block.group)];
    unit = std::max(unit, bytes);
    const bool stays = block.source >= 0 && block.source == block.destination;
    if (group.size() >= 2 && !stays) value = std::max(value, bytes * scale(group.size()));
  }
  return unit > 0 ? value / unit : scale(2);
}

double largestBlock(const Cell& cell) {
  return largest(cell, [](int) { return 1.0; });
}

int largestGroup(const Cell& cell) {
  int size = 0;
  for (const Group& g : cell.groups) size = std::max(size, g.size());
  return size;
}

double treeWeight(const Cell& cell, const Group& group) {
  return cell.collective == Collective::Reduce ? partialWeightOf(cell, group.size()) : 1;
}

void buildTree(SliceList& list, const Cell& cell, int stages) {
  for (const int g : cell.live()) {
    const Group& group = list.group(g);
    const int root = group.ranks[static_cast<std::size_t>(group.root)];
    addTree(list, {g, without(group.ranks, root), stages, -1}, treeWeight(cell, group));
  }
}

using Candidates = std::vector<Candidate>;
using Kept = std::shared_ptr<const Cell>;

void addPieces(Candidates& to, const Kept& cell, const std::string& name, double value,
               int messages, Build build) {
  for (const int p : kPieces) {
    to.push_back(makeCandidate(
        cell, name + " P=" + std::to_string(p), p,
        {.direct = true, .stages = p, .value = value, .messages = messages * p}, build));
  }
}

void addTwoShot(Candidates& to, const Kept& cell) {
  const int members = largestGroup(*cell);
  if (members < 3) return;  // a pair's exchange is as fast and has one hop
  const double value = largest(*cell, [](int size) { return 2.0 / size; });
  for (const int p : kPieces) {
    to.push_back(makeCandidate(cell, "direct two-shot P=" + std::to_string(p), p,
                               {.direct = true,
                                .stages = p + 1,
                                .value = value,
                                .hops = 2,
                                .messages = 2 * p * (members - 1)},
                               buildTwoShot));
  }
}

// The value where groups differ: in each stage the slowest group counts.
double treeValue(const Cell& cell, int stages) {
  const double unit = cell.blockBytes.empty()
                          ? 1
                          : *std::max_element(cell.blockBytes.begin(), cell.blockBytes.end());
  double value = 0;
  for (int stage = 0; stage < stages; ++stage) {
    double longest = 0;
    for (const int g : cell.live()) {
      const auto index = static_cast<std::size_t>(g);  // one block a group
      const double bytes =
          index < cell.blockBytes.size() && unit > 0 ? cell.blockBytes[index] / unit : 1;
      const int relays = cell.groups[index].size() - 1;
      const double weight = treeWeight(cell, cell.groups[index]);
      longest = std::max(longest, bytes * treeStage(relays, stages, 0, weight, stage));
    }
    value += longest;
  }
  return value;
}

void addTrees(Candidates& to, const Kept& cell) {
  const int others = largestGroup(*cell) - 1;
  if (others < 2) return;
  const bool grows = cell->collective == Collective::Reduce && cell->partialWeight != 1;
  for (const int k : grows ? std::span<const int>(kGrowingStages) : kUniformStages) {
    to.push_back(makeCandidate(
        cell, "direct K=" + std::to_string(k), k,
        {.direct = true,
         .stages = k,
         .value = treeValue(*cell, k),
         .hops = 2,
         .messages = cell->collective == Collective::Broadcast ? others * k : others * (k - 1) + 1},
        buildTree));
  }
}

}  // namespace

void buildExchange(SliceList& list, const Cell& cell, int pieces) {
  for (const int g : cell.live()) {
    const int lane = list.newLane();
    for (int piece = 0; piece < pieces; ++piece) {
      Slice& slice = list.sumEverywhere(list.block(g), 1.0 / pieces, lane);
      for (const int r : list.group(g).ranks) contribute(slice, list.group(g), r, piece);
    }
  }
}

void buildTwoShot(SliceList& list, const Cell& cell, int pieces) {
  for (const int g : cell.live()) {
    const Group& group = list.group(g);
    for (const int owner : group.ranks) {
      const int lane = list.newLane();
      for (int piece = 0; piece < pieces; ++piece) {
        Slice& slice = list.sumAt(owner, list.block(g), 1.0 / (pieces * group.size()), lane, true);
        contribute(slice, group, owner, piece);
        distribute(slice, group, owner, piece + 1);
      }
    }
  }
}

void buildOwned(SliceList& list, const Cell& cell, int pieces) {
  for (const int g : cell.live()) {
    const Group& group = list.group(g);
    for (int p = 0; p < group.size(); ++p) {
      if (cell.collective == Collective::Reduce && p != group.root) continue;
      const int owner = group.ranks[static_cast<std::size_t>(p)];
      const int lane = list.newLane();
      for (int piece = 0; piece < pieces; ++piece) {
        Slice& slice = list.sumAt(owner, list.block(g, 0, p), 1.0 / pieces, lane, true);
        contribute(slice, group, owner, piece);
      }
    }
  }
}

void buildMoves(SliceList& list, const Cell& cell, int pieces) {
  const Shape shape = makeShape(cell.collective, cell.ranks, cell.groups);
  const int lane = list.newLane();
  for (std::size_t b = 0; b < shape.blocks.size(); ++b) {
    const Block& block = shape.blocks[b];
    const Group& group = list.group(block.group);
    if (group.size() < 2 || block.source == block.destination) continue;
    const int source = group.ranks[static_cast<std::size_t>(block.source)];
    for (int piece = 0; piece < pieces; ++piece) {
      Slice& slice = list.move(static_cast<int>(b), 1.0 / pieces, lane, true);
      if (block.destination < 0) {
        distribute(slice, group, source, piece);
      } else {
        slice.out = {{source, group.ranks[static_cast<std::size_t>(block.destination)], piece}};
      }
    }
  }
}

std::vector<Candidate> directCandidates(const Cell& cell) {
  Candidates candidates;
  const auto kept = std::make_shared<const Cell>(cell);
  const int others = std::max(0, largestGroup(cell) - 1);
  const double value = largestBlock(cell);
  const auto addMoves = [&] {
    candidates.push_back(makeCandidate(
        kept, "direct", 1, {.direct = true, .stages = 1, .value = value, .messages = others},
        buildMoves));
  };
  switch (cell.collective) {
    case Collective::AllReduce:
      addPieces(candidates, kept, "direct exchange", value, others, buildExchange);
      addTwoShot(candidates, kept);
      break;
    case Collective::ReduceScatter:
      addPieces(candidates, kept, "direct", value, others, buildOwned);
      break;
    case Collective::Reduce:
      addPieces(candidates, kept, "direct", value, 1, buildOwned);
      addTrees(candidates, kept);
      break;
    case Collective::Broadcast:
      addMoves();
      addTrees(candidates, kept);
      break;
    case Collective::AllGather:
    case Collective::AllToAll:
    case Collective::Scatter:
      addMoves();
      break;
    case Collective::Gather:
      addMoves();
      candidates.back().messagesPerRank = std::min(1, others);
      break;
  }
  return candidates;
}

}  // namespace byway
