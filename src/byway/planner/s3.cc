// SPDX-License-Identifier: BSD-3-Clause
// S3: allreduce of one group (S2 is its case A = 2), helpers sum.
//
//   stage          0          1          2         ...   K-1
//   member->h   up 0       up 1       up 2               -        raw contributions
//   h->member   -          down 0     down 1             down K-2  one sum for all
//   member<->   RS 0,1     RS 2 AG 0  RS 3 AG 1          AG K-2,K-1
//
// Every link of a member carries tau = 1 / (H (K-1) + A K / 2) of the count in every stage, both
// ways, but for the ends of the up and down links: value K tau = 2/A over 1 + 2H/A - 2H/(A K)
// (docs/schedules.md, S3). Direct pieces are tau / 2 for each owner, first reduce-scattered (RS),
// then gathered (AG). A pair exchanges its direct pieces, tau each, instead: one hop, same load.
#include "byway/planner/builders.h"
#include "byway/planner/constructions.h"

namespace byway {
namespace {

double stageLength(const Cell& cell, int members, int stages) {
  const double helpers = cell.ranks - members;
  return 1 / (helpers * cell.helperShare * (stages - 1) + members * stages / 2.0);
}

// Reduce-scatter of pieces 0 and 1 in stage 0, of piece k + 1 in stage k; gathered two stages
// later, but the last piece with the one before.
void addOwned(SliceList& list, int g, int stages, double size) {
  const Group& group = list.group(g);
  for (const int owner : group.ranks) {
    const int lane = list.newLane();
    for (int piece = 0; piece < stages; ++piece) {
      Slice& slice = list.sumAt(owner, list.block(g), size, lane, true);
      contribute(slice, group, owner, std::max(0, piece - 1));
      distribute(slice, group, owner, std::min(piece + 1, stages - 1));
    }
  }
}

void addExchanged(SliceList& list, int g, int stages, double size) {
  const int lane = list.newLane();
  for (int stage = 0; stage < stages; ++stage) {
    Slice& slice = list.sumEverywhere(list.block(g), size, lane);
    for (const int r : list.group(g).ranks) contribute(slice, list.group(g), r, stage);
  }
}

void build(SliceList& list, const Cell& cell, int stages) {
  const int g = cell.live()[0];
  const Group& group = list.group(g);
  const double tau = stageLength(cell, group.size(), stages);
  if (group.size() == 2) {
    addExchanged(list, g, stages, tau);
  } else {
    addOwned(list, g, stages, tau / 2);
  }
  for (const int helper : cell.helpersOf(g)) {
    const int lane = list.newLane();
    for (int stage = 0; stage + 1 < stages; ++stage) {
      Slice& slice = list.sumAt(helper, list.block(g), tau * cell.helperShare, lane);
      contribute(slice, group, helper, stage);
      distribute(slice, group, helper, stage + 1);
    }
  }
}

}  // namespace

std::vector<Candidate> s3Candidates(const Cell& cell) {
  std::vector<Candidate> candidates;
  if (cell.collective != Collective::AllReduce || !cell.regular() || !cell.single()) return {};
  const int members = cell.groups[static_cast<std::size_t>(cell.live()[0])].size();
  const int helpers = cell.ranks - members;
  if (helpers == 0) return {};
  const auto kept = std::make_shared<const Cell>(cell);
  for (const int k : kUniformStages) {
    const int direct = members == 2 ? k : 2 * (k - 1) * (members - 1);
    candidates.push_back(makeCandidate(kept, "S3 K=" + std::to_string(k), k,
                                       {.stages = k,
                                        .value = k * stageLength(cell, members, k),
                                        .hops = 2,
                                        .messages = direct + helpers * (k - 1)},
                                       build));
  }
  return candidates;
}

}  // namespace byway
