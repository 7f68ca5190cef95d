// SPDX-License-Identifier: BSD-3-Clause
// S6: all-to-all of two groups of four at once, on eight ranks, in P pieces.
//
//   phase             0         1               ...   P
//   within a group    d0        d1                    dP         direct: the whole phase
//   between groups    up 0      up 1, down 0          down P-1   both duties on every link
//
// 0.4 of a segment is relayed, in 24 (source, destination, helper) routes: the fewest that load
// every up and every down link with 0.3. Phases are 0.3/P, 0.6/P, ..., 0.3/P: value 3/5
// (docs/schedules.md, S6: no schedule of any depth does better).
#include <array>

#include "byway/planner/builders.h"
#include "byway/planner/constructions.h"

namespace byway {
namespace {

constexpr int kMembers = 4;
constexpr double kTenth = 0.1;

struct Route {
  int source, destination, helper;  // positions in the group, in the other group
  int tenths;                       // of a segment
};

constexpr std::array<Route, 24> kRoutes{{
    {0, 1, 1, 3}, {0, 1, 2, 1}, {0, 2, 0, 1}, {0, 2, 3, 3}, {0, 3, 0, 2}, {0, 3, 2, 2},
    {1, 0, 1, 1}, {1, 0, 2, 3}, {1, 2, 0, 2}, {1, 2, 1, 2}, {1, 3, 0, 1}, {1, 3, 3, 3},
    {2, 0, 0, 3}, {2, 0, 3, 1}, {2, 1, 2, 2}, {2, 1, 3, 2}, {2, 3, 1, 3}, {2, 3, 2, 1},
    {3, 0, 1, 2}, {3, 0, 3, 2}, {3, 1, 0, 3}, {3, 1, 3, 1}, {3, 2, 1, 1}, {3, 2, 2, 3},
}};

void addDirect(SliceList& list, int g, int pieces) {
  const Group& group = list.group(g);
  for (int s = 0; s < kMembers; ++s) {
    for (int d = 0; d < kMembers; ++d) {
      if (s == d) continue;
      const int lane = list.newLane();
      for (int phase = 0; phase <= pieces; ++phase) {
        const int tenths = phase == 0 || phase == pieces ? 3 : 6;
        list.move(list.block(g, s, d), kTenth * tenths / pieces, lane, true).out = {
            {group.ranks[static_cast<std::size_t>(s)], group.ranks[static_cast<std::size_t>(d)],
             phase}};
      }
    }
  }
}

void build(SliceList& list, const Cell& cell, int pieces) {
  const std::vector<int> live = cell.live();
  for (std::size_t i = 0; i < 2; ++i) {
    const int g = live[i];
    const std::vector<int>& ranks = list.group(g).ranks;
    const std::vector<int>& others = list.group(live[1 - i]).ranks;
    addDirect(list, g, pieces);
    for (const Route& route : kRoutes) {
      const int source = ranks[static_cast<std::size_t>(route.source)];
      const int destination = ranks[static_cast<std::size_t>(route.destination)];
      const int helper = others[static_cast<std::size_t>(route.helper)];
      const int block = list.block(g, route.source, route.destination);
      const int lane = list.newLane();
      for (int piece = 0; piece < pieces; ++piece) {
        list.move(block, kTenth * route.tenths / pieces, lane).out = {
            {source, helper, piece}, {helper, destination, piece + 1}};
      }
    }
  }
}

}  // namespace

std::vector<Candidate> s6Candidates(const Cell& cell) {
  std::vector<Candidate> candidates;
  if (cell.collective != Collective::AllToAll || !cell.regular()) return {};
  const std::vector<int> live = cell.live();
  if (live.size() != 2 || cell.ranks != 2 * kMembers || !cell.coversAllRanks()) return {};
  const auto kept = std::make_shared<const Cell>(cell);
  for (const int p : kPieces) {
    const int direct = (kMembers - 1) * (p + 1);
    candidates.push_back(makeCandidate(kept, "S6 P=" + std::to_string(p), p,
                                       {.stages = p + 1,
                                        .value = 0.6,
                                        .hops = 2,
                                        .messages = direct + 2 * kMembers * p,
                                        .ring = moveRing(6 * kTenth / 3 / p, 1)},
                                       build));
  }
  return candidates;
}

}  // namespace byway
