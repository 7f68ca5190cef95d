// SPDX-License-Identifier: BSD-3-Clause
// S5: all-to-all of one group, any size.
//
//   stage            0        1                ...   K-1
//   member->member   d0       d1                     d(K-1)       direct piece tau of each pair
//   member->h        up 0     up 1                   -            tau / (A-1) for each destination
//   h->member        -        down 0                 down K-2     tau / (A-1) from each source
//
// tau = 1 / (K + H (K-1) / (A-1)) of a pair's segment; value K tau, 1 over
// 1 + (H / (A-1)) (K-1)/K (docs/schedules.md, S5). What a member sends to one helper in a stage,
// and a helper to one member, is one message (S9).
#include "byway/planner/constructions.h"
#include "byway/planner/relay_stars.h"

namespace byway {
namespace {

double stageLength(const Cell& cell, int members, int stages) {
  const double helpers = cell.ranks - members;
  return 1 / (stages + helpers * cell.helperShare * (stages - 1) / (members - 1));
}

void build(SliceList& list, const Cell& cell, int stages) {
  const int members = list.group(cell.live()[0]).size();
  const double tau = stageLength(cell, members, stages);
  const auto count = static_cast<std::size_t>(stages);
  addStars(list, cell,
           {std::vector<double>(count, tau),
            std::vector<double>(count - 1, tau * cell.helperShare / (members - 1))});
}

}  // namespace

std::vector<Candidate> s5Candidates(const Cell& cell) {
  std::vector<Candidate> candidates;
  if (cell.collective != Collective::AllToAll || !cell.regular() || !cell.single()) return {};
  const int members = cell.groups[static_cast<std::size_t>(cell.live()[0])].size();
  const int helpers = cell.ranks - members;
  if (helpers == 0) return {};
  const auto kept = std::make_shared<const Cell>(cell);
  for (const int k : kUniformStages) {
    const double tau = stageLength(cell, members, k);
    candidates.push_back(
        makeCandidate(kept, "S5 K=" + std::to_string(k), k,
                      {.stages = k,
                       .value = k * tau,
                       .hops = 2,
                       .messages = starMessages(cell.collective, members, helpers, k, k - 1, 0),
                       .ring = starRing(cell.collective, members, tau / (members - 1))},
                      build));
  }
  return candidates;
}

}  // namespace byway
