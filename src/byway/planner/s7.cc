// SPDX-License-Identifier: BSD-3-Clause
// S7: broadcast, and its time reverse, reduce: of one group, or of two groups that cover all ranks.
//
//   broadcast, stage   0          1                         ...   K-1
//   root->x            chunk x0   chunk x1                        last chunk, to members
//   x->members         -          chunk x0 to the others          chunk x(K-2)
//
// x is every rank but the root, so the root's links all carry different chunks. One group: chunks
// of 1 / ((n-1)(K-1) + 1), value K of them (docs/schedules.md, S7). Two groups of A: a root relays
// only once for the other, in the last stage where its links are free: chunks of
// 1 / ((2A-2)(K-1) + 2).
//
//   reduce, stage      0                    1                     ...   K-1
//   members->x         raw chunk x0         raw chunk x1                -
//   x->root            raw chunk, members   sum of x0                   sum of x(K-2)
//
// A sum of partials is w times as wide on its link, so chunk k has w^k times the size of the first.
#include "byway/planner/builders.h"
#include "byway/planner/constructions.h"
#include "byway/planner/relay_trees.h"

namespace byway {
namespace {

int rootRank(const Group& group) { return group.ranks[static_cast<std::size_t>(group.root)]; }

RelayTree treeOf(const Cell& cell, std::size_t which, int stages) {
  const std::vector<int> live = cell.live();
  const Group& group = cell.groups[static_cast<std::size_t>(live[which])];
  RelayTree tree{live[which], without(group.ranks, rootRank(group)), stages, -1};
  std::vector<int> helpers = cell.helpersOf(live[which]);
  if (live.size() == 2) {
    tree.once = rootRank(cell.groups[static_cast<std::size_t>(live[1 - which])]);
    helpers = without(helpers, tree.once);
  }
  tree.relays.insert(tree.relays.end(), helpers.begin(), helpers.end());
  return tree;
}

double treeWeight(const Cell& cell, std::size_t which) {
  const int g = cell.live()[which];
  return cell.collective == Collective::Reduce
             ? partialWeightOf(cell, cell.groups[static_cast<std::size_t>(g)].size())
             : 1;
}

void build(SliceList& list, const Cell& cell, int stages) {
  for (std::size_t i = 0; i < cell.live().size(); ++i) {
    addTree(list, treeOf(cell, i, stages), treeWeight(cell, i));
  }
}

// Messages of the rank that sends most: the root of a broadcast, any other member of a reduce.
int messagesOf(const Cell& cell, int members, int relays, bool pair, int stages) {
  const int chunks = relays * (stages - 1) + 1;
  if (cell.collective == Collective::Broadcast) {
    return chunks + members - 2 + (pair ? members : 0);
  }
  return pair ? (2 * members - 1) * (stages - 1) + 2 : chunks;
}

}  // namespace

std::vector<Candidate> s7Candidates(const Cell& cell) {
  std::vector<Candidate> candidates;
  const bool sums = cell.collective == Collective::Reduce;
  if ((cell.collective != Collective::Broadcast && !sums) || !cell.regular()) return {};
  const std::vector<int> live = cell.live();
  const bool pair = live.size() == 2 && cell.coversAllRanks();
  if (!pair && live.size() != 1) return {};
  const int members = cell.groups[static_cast<std::size_t>(live[0])].size();
  if (members == cell.ranks) return {};  // no helpers: the direct ones are the same
  const double weight = treeWeight(cell, 0);
  const int relays = pair ? cell.ranks - 2 : cell.ranks - 1;
  const auto kept = std::make_shared<const Cell>(cell);
  for (const int k : weight != 1 ? std::span<const int>(kGrowingStages) : kUniformStages) {
    double value = 0;
    for (int stage = 0; stage < k; ++stage) value += treeStage(relays, k, pair, weight, stage);
    const double chunk = treeStage(relays, k, pair, weight, 0);
    addIfFaster(candidates, makeCandidate(kept, "S7 K=" + std::to_string(k), k,
                                          {.stages = k,
                                           .value = value,
                                           .hops = 2,
                                           .messages = messagesOf(cell, members, relays, pair, k),
                                           .ring = sums && members > 2 ? 3 : moveRing(chunk, 1)},
                                          build));
  }
  return candidates;
}

}  // namespace byway
