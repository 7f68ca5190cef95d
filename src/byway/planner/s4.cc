// SPDX-License-Identifier: BSD-3-Clause
// S4: all-gather and gather of one group, and their time reverse, reduce-scatter and scatter (S1 is
// the case A = 2, where all stages are alike).
//
//   all-gather, stage  0            1               2                  length u g^k, g = A-1
//   member->member     d0           d1              d2                 direct, the whole stage
//   member->h          up 0 (u)     up 1 (g u)      -                  one slice
//   h->member          -            down 0 (g x u)  down 1 (g x g u)   one slice of each source
//
//   reduce-scatter     0              1               2                length falls by g / w
//   member->h          up 0 (g x v0)  up 1 (g x v1)   -                one raw slice for each owner
//   h->member          -              down 0 (w v0)   down 1 (w v1)    their sum; w: width of
//   partials
//
// A helper sends g = A-1 slices for each that it gets (or the reverse), so stages grow by that
// factor, and every link is busy in every stage but for the ends. Value: sum of the stages with
// u = 1 / (sum_{k<K} g^k + H sum_{k<K-1} g^k), 1 over 1 + H (g^(K-1) - 1)/(g^K - 1)
// (docs/schedules.md, S4); partials of weight w rebalance the stages to g v_k = w v_{k-1}.
#include <algorithm>
#include <numeric>

#include "byway/planner/constructions.h"
#include "byway/planner/relay_stars.h"

namespace byway {
namespace {

// Slices grow by down / up, so that what comes down in a stage is as long as what goes up in it.
StageSizes sizesOf(const Cell& cell, int members, int stages) {
  const StarFan fan = starFan(cell.collective, members, partialWeightOf(cell, members));
  const int helpers = cell.ranks - members;
  StageSizes sizes;
  double slice = 1, total = 0;
  for (int k = 0; k < stages; ++k) {
    sizes.direct.push_back(fan.up * slice);
    const double relayed = slice * cell.helperShare;
    if (k + 1 < stages) sizes.relayed.push_back(relayed);
    total += fan.up * slice + (k + 1 < stages ? helpers * relayed : 0);
    slice *= fan.down / fan.up;
  }
  for (double& size : sizes.direct) size /= total;
  for (double& size : sizes.relayed) size /= total;
  return sizes;
}

void build(SliceList& list, const Cell& cell, int stages) {
  const int members = list.group(cell.live()[0]).size();
  addStars(list, cell, sizesOf(cell, members, stages));
}

bool covers(const Cell& cell) {
  switch (cell.collective) {
    case Collective::AllGather:
    case Collective::Gather:
    case Collective::ReduceScatter:
    case Collective::Scatter:
      return cell.single() && cell.regular();
    case Collective::AllReduce:
    case Collective::AllToAll:
    case Collective::Broadcast:
    case Collective::Reduce:
      return false;
  }
  return false;
}

}  // namespace

std::vector<Candidate> s4Candidates(const Cell& cell) {
  std::vector<Candidate> candidates;
  if (!covers(cell)) return {};
  const int members = cell.groups[static_cast<std::size_t>(cell.live()[0])].size();
  const int helpers = cell.ranks - members;
  if (helpers == 0) return {};
  const auto kept = std::make_shared<const Cell>(cell);
  const StarFan fan = starFan(cell.collective, members, partialWeightOf(cell, members));
  for (const int k : fan.up == fan.down ? std::span<const int>(kUniformStages) : kGrowingStages) {
    const StageSizes sizes = sizesOf(cell, members, k);
    const double largest = *std::max_element(sizes.relayed.begin(), sizes.relayed.end());
    addIfFaster(
        candidates,
        makeCandidate(kept, "S4 K=" + std::to_string(k), k,
                      {.stages = k,
                       .value = std::accumulate(sizes.direct.begin(), sizes.direct.end(), 0.0),
                       .hops = 2,
                       .messages = starMessages(cell.collective, members, helpers, k, k - 1, 0),
                       .ring = starRing(cell.collective, members, largest)},
                      build));
  }
  return candidates;
}

}  // namespace byway
