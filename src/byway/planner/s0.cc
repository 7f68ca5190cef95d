// SPDX-License-Identifier: BSD-3-Clause
// S0: groups of one size that cover all ranks, all at once, each helping the others, in P pieces.
//
//   phase             0         1               ...   P
//   within a group    d0        d1                    dP         direct: the whole phase
//   between groups    up 0      up 1, down 0          down P-1   both duties on every link
//
// With slices of u, `up` of them on the way up and `down` on the way down, a phase is as long as
// its up and down slices together, and direct pieces fill it: value P u (up + down), whatever P is
// (docs/schedules.md, S0). More pieces hide sums and latencies.
//
//   collective                 up    down  u P                    value
//   allreduce                  1     1     1 / n                  2 / n
//   all-gather, gather         1     A-1   1 / n                  A / n
//   reduce-scatter             A-1   w     1 / (n - 1 + w)        (A-1+w) / (n-1+w)
//   scatter                    A-1   1     1 / n                  A / n
//   all-to-all                 A-1   A-1   1 / (n + A - 2)        2 (A-1) / (n + A - 2)
//   broadcast                  1     1     1 / n                  2 / n    relays: all but the root
//   reduce                     1     w     1 / n                  (1+w) / n
//
// w: the weight of partial sums (1 for pairs, which form none).
#include "byway/planner/constructions.h"
#include "byway/planner/relay_stars.h"
#include "byway/planner/relay_trees.h"

namespace byway {
namespace {

// With two slots the receive of a phase would wait for sends that end as it should begin.
constexpr int kRing = 3;

// A slice of phase k counts up to `up` slices of its link going up, `down` coming down.
std::vector<double> phaseLengths(StarFan fan, double slice, int pieces) {
  std::vector<double> lengths;
  for (int k = 0; k <= pieces; ++k) {
    lengths.push_back(((k < pieces ? fan.up : 0) + (k > 0 ? fan.down : 0)) * slice);
  }
  return lengths;
}

void buildStars(SliceList& list, const Cell& cell, int pieces) {
  const int members = list.group(cell.live()[0]).size();
  const StarFan fan = starFan(cell.collective, members, partialWeightOf(cell, members));
  const double slice = 1 / ((fan.up + fan.down + cell.ranks - members) * pieces);
  addStars(list, cell,
           {phaseLengths(fan, slice, pieces),
            std::vector<double>(static_cast<std::size_t>(pieces), slice)});
}

// Owners sum their own pieces, which are gathered a phase later; a pair exchanges instead.
void addDirectSums(SliceList& list, int g, int pieces, double slice) {
  const Group& group = list.group(g);
  if (group.size() == 2) {
    const int lane = list.newLane();
    const std::vector<double> lengths = phaseLengths({1, 1}, slice, pieces);
    for (int k = 0; k <= pieces; ++k) {
      Slice& swap = list.sumEverywhere(list.block(g), lengths[static_cast<std::size_t>(k)], lane);
      for (const int r : group.ranks) contribute(swap, group, r, k);
    }
    return;
  }
  for (const int owner : group.ranks) {
    const int lane = list.newLane();
    for (int k = 0; k < pieces; ++k) {
      Slice& sum = list.sumAt(owner, list.block(g), slice, lane, true);
      contribute(sum, group, owner, k);
      distribute(sum, group, owner, k + 1);
    }
  }
}

void buildAllReduce(SliceList& list, const Cell& cell, int pieces) {
  const double slice = 1.0 / (cell.ranks * pieces);
  for (const int g : cell.live()) {
    addDirectSums(list, g, pieces, slice);
    for (const int helper : cell.helpersOf(g)) {
      const int lane = list.newLane();
      for (int k = 0; k < pieces; ++k) {
        Slice& sum = list.sumAt(helper, list.block(g), slice, lane);
        contribute(sum, list.group(g), helper, k);
        distribute(sum, list.group(g), helper, k + 1);
      }
    }
  }
}

// Relays are all ranks but the root; its direct pieces fill what they leave of its own links.
void buildTree(SliceList& list, const Cell& cell, int pieces) {
  const double slice = 1.0 / (cell.ranks * pieces);
  const bool sums = cell.collective == Collective::Reduce;
  for (const int g : cell.live()) {
    const Group& group = list.group(g);
    const int root = group.ranks[static_cast<std::size_t>(group.root)];
    const int direct = list.newLane();
    for (int k = 0; k < pieces; ++k) {
      if (sums) contribute(list.sumAt(root, list.block(g), slice, direct, true), group, root, k);
      if (!sums) distribute(list.move(list.block(g), slice, direct, true), group, root, k + 1);
    }
    for (int relay = 0; relay < cell.ranks; ++relay) {
      if (relay == root) continue;
      const int lane = list.newLane();
      for (int k = 0; k < pieces; ++k) addThrough(list, {g, relay, lane, k}, slice);
    }
  }
}

int treeMessages(const Cell& cell, int members, int pieces) {
  const int others = cell.ranks / members - 1;
  const int helpers = cell.ranks - members;
  if (cell.collective == Collective::Broadcast) {
    return (members - 1) * (pieces + 1) + (helpers + others * (members - 1)) * pieces;
  }
  const int toRoot = members > 2 ? 2 * pieces : pieces + 1;
  return (cell.ranks - 2 + others) * pieces + toRoot;
}

Candidate candidate(const std::shared_ptr<const Cell>& cell, int pieces, double value, int messages,
                    int ring, Build build) {
  return makeCandidate(
      cell, "S0 P=" + std::to_string(pieces), pieces,
      {.stages = pieces + 1, .value = value, .hops = 2, .messages = messages, .ring = ring}, build);
}

std::vector<Candidate> allReduceCandidates(const Cell& cell, int members) {
  std::vector<Candidate> candidates;
  const auto kept = std::make_shared<const Cell>(cell);
  for (const int p : kPieces) {
    const int direct = members == 2 ? p + 1 : 2 * (members - 1) * p;
    candidates.push_back(candidate(kept, p, 2.0 / cell.ranks,
                                   direct + 2 * (cell.ranks - members) * p, kRing, buildAllReduce));
  }
  return candidates;
}

std::vector<Candidate> treeCandidates(const Cell& cell, int members) {
  std::vector<Candidate> candidates;
  const auto kept = std::make_shared<const Cell>(cell);
  const bool sums = cell.collective == Collective::Reduce;
  const double value = (sums ? 1 + partialWeightOf(cell, members) : 2) / cell.ranks;
  for (const int p : kPieces) {
    candidates.push_back(
        candidate(kept, p, value, treeMessages(cell, members, p), kRing, buildTree));
  }
  return candidates;
}

std::vector<Candidate> starCandidates(const Cell& cell, int members) {
  std::vector<Candidate> candidates;
  const auto kept = std::make_shared<const Cell>(cell);
  const int helpers = cell.ranks - members;
  const int others = cell.ranks / members - 1;
  const StarFan fan = starFan(cell.collective, members, partialWeightOf(cell, members));
  const double total = fan.up + fan.down + helpers;
  for (const int p : kPieces) {
    candidates.push_back(candidate(
        kept, p, (fan.up + fan.down) / total,
        starMessages(cell.collective, members, helpers, p + 1, p, others), kRing, buildStars));
  }
  return candidates;
}

}  // namespace

std::vector<Candidate> s0Candidates(const Cell& cell) {
  if (!cell.regular() || cell.single() || !cell.coversAllRanks()) return {};
  const int members = cell.groups[static_cast<std::size_t>(cell.live()[0])].size();
  switch (cell.collective) {
    case Collective::AllReduce:
      return allReduceCandidates(cell, members);
    case Collective::Broadcast:
    case Collective::Reduce:
      return treeCandidates(cell, members);
    case Collective::AllGather:
    case Collective::Gather:
    case Collective::ReduceScatter:
    case Collective::Scatter:
    case Collective::AllToAll:
      return starCandidates(cell, members);
  }
  return {};
}

}  // namespace byway
