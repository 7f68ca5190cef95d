// SPDX-License-Identifier: BSD-3-Clause
// Packing: every block is split over whole routes (packing_routes.h) in the amounts that the LP
// finds (packing_master.h).
//
//   stage            0        1        2      ...   K-1
//   route, depth 1   piece 0  piece 1  piece 2      piece K-1
//   route, depth 2   hop 0    hop 0    hop 0        -
//                    of 0     of 1     of 2
//                    -        hop 1    hop 1        hop 1
//                             of 0     of 1         of K-2
//
// A route of depth d takes K - d + 1 equal pieces; piece k crosses hop i in stage k + i, so every
// link carries the same load in every stage but the first and the last few. The LP counts a route's
// loads K / (K - d + 1) times, so its T is K times the longest load of a stage: the value. That is
// the sum of the stages' maxima where the first and last stages are as long as the others. Dataflow
// may be a little faster than that, and slower only by latencies, since pieces of equal stages
// leave no link waiting for another.
#include "byway/planner/packing.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "byway/planner/constructions.h"
#include "byway/planner/packing_master.h"

namespace byway {
namespace {

constexpr double kUnits = 1ULL << 40;
constexpr double kTiny = 1e-3;   // parts of a block that are not worth their messages,
constexpr double kHarm = 1.003;  // unless the others would take this much longer
constexpr int kDeepest = 8;      // routes of more stages need more than kPackingStages has
constexpr int kRing = 3;  // slots: more let direct pieces run ahead of what must be passed on

// What all candidates of a cell share.
struct Packed {
  Cell cell;
  PackingProblem problem;
  PackedRoutes found;
};

// Drops what is tiny; the other routes of the same block take over.
Packing pruned(const Packed& packed, const Packing& packing) {
  const auto& routes = packed.found.routes;
  std::vector<double> kept(packed.problem.jobs.size());
  Packing result = packing;
  for (std::size_t r = 0; r < routes.size(); ++r) {
    const std::size_t job = routes[r].job;
    if (result.amounts[r] < kTiny * packed.problem.jobs[job].size) result.amounts[r] = 0;
    kept[job] += result.amounts[r];
  }
  for (std::size_t j = 0; j < kept.size(); ++j) {
    if (kept[j] <= 0 && packed.problem.jobs[j].size > 0) return packing;  // all of it is tiny
  }
  for (std::size_t r = 0; r < routes.size(); ++r) {
    if (result.amounts[r] <= 0) continue;
    result.amounts[r] *= packed.problem.jobs[routes[r].job].size / kept[routes[r].job];
  }
  result.time = packedTime(packed.problem, routes, result);
  return result.time <= kHarm * packing.time ? result : packing;
}

// A route for each block without bytes: its schedule must be whole all the same.
std::vector<std::size_t> emptyRoutes(const Packed& packed) {
  const auto& routes = packed.found.routes;
  std::vector<std::size_t> result;
  for (std::size_t j = 0; j < packed.problem.jobs.size(); ++j) {
    if (packed.problem.jobs[j].size > 0) continue;
    std::size_t best = routes.size();
    for (std::size_t r = 0; r < routes.size(); ++r) {
      if (routes[r].job != j) continue;
      if (best == routes.size() || routes[r].depth < routes[best].depth) best = r;
    }
    result.push_back(best);
  }
  return result;
}

void addPiece(std::vector<Slice>& slices, const PackingRoute& route, int lane, int stage,
              std::uint64_t units) {
  Slice& slice = slices.emplace_back(route.slice);
  slice.lane = lane;
  slice.units = units;
  for (InHop& in : slice.in) in.hop.stage += stage;
  for (Hop& hop : slice.out) hop.stage += stage;
}

Schedule build(const Packed& packed, const Packing& packing, const std::string& name) {
  const auto& routes = packed.found.routes;
  std::vector<Slice> slices;
  int lane = 0;
  for (std::size_t r = 0; r < routes.size(); ++r) {
    if (packing.amounts[r] <= 0) continue;
    const int pieces = packing.stages - routes[r].depth + 1;
    const auto units =
        static_cast<std::uint64_t>(std::llround(packing.amounts[r] * kUnits / pieces));
    for (int piece = 0; piece < pieces; ++piece) addPiece(slices, routes[r], lane, piece, units);
    ++lane;
  }
  for (const auto r : emptyRoutes(packed)) addPiece(slices, routes[r], lane++, 0, 1);
  const Cell& cell = packed.cell;
  return emit(makeShape(cell.collective, cell.ranks, cell.groups), slices, {name, kRing});
}

// Messages of a stage: one for each link and each pair of places between which data goes.
int messagesPerStage(const Packed& packed, const Packing& packing) {
  std::vector<std::pair<std::size_t, int>> kinds;
  const auto& routes = packed.found.routes;
  for (std::size_t r = 0; r < routes.size(); ++r) {
    if (packing.amounts[r] <= 0) continue;
    const Slice& slice = routes[r].slice;
    const auto link = [&](const Hop& hop) { return packed.problem.link(hop.from, hop.to); };
    for (const InHop& in : slice.in) {
      kinds.emplace_back(link(in.hop), in.hop.from == in.contributor ? 0 : 1);
    }
    for (const Hop& hop : slice.out) {
      const bool first = hop.from == slice.out.front().from;
      const bool last = std::none_of(slice.out.begin(), slice.out.end(),
                                     [&](const Hop& next) { return next.from == hop.to; });
      kinds.emplace_back(link(hop), (first ? 2 : 3) + (last ? 2 : 0));
    }
  }
  std::sort(kinds.begin(), kinds.end());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  const auto n = static_cast<std::size_t>(packed.problem.ranks);
  std::vector<int> sent(n);
  for (const auto& [link, kind] : kinds) ++sent[link / n];
  return *std::max_element(sent.begin(), sent.end());
}

Candidate candidateOf(const std::shared_ptr<const Packed>& packed, const Packing& packing) {
  Candidate candidate;
  candidate.name = packed->problem.membersOnly ? "direct packing K=" : "packing K=";
  candidate.name += std::to_string(packing.stages);
  candidate.direct = true;
  candidate.stages = packing.stages;
  candidate.value = packing.time;
  candidate.linkRate = packed->problem.fastest;
  for (std::size_t r = 0; r < packing.amounts.size(); ++r) {
    if (packing.amounts[r] <= 0) continue;
    candidate.direct = candidate.direct && packed->found.routes[r].slice.direct;
    candidate.hops = std::max(candidate.hops, packed->found.routes[r].depth);
  }
  candidate.messagesPerRank = packing.stages * messagesPerStage(*packed, packing);
  candidate.build = [packed, packing, name = candidate.name] {
    return build(*packed, packing, name);
  };
  return candidate;
}

bool somethingMoves(const PackingProblem& problem) {
  return std::any_of(problem.jobs.begin(), problem.jobs.end(),
                     [](const PackingJob& job) { return job.size > 0; });
}

}  // namespace

namespace {
std::atomic<std::uint64_t> solves{0};
}

std::uint64_t packingSolves() { return solves; }

std::vector<Candidate> packedCandidates(const Cell& cell, bool membersOnly) {
  ++solves;
  if (cell.topology == nullptr || cell.live().empty()) return {};
  const auto packed = std::make_shared<Packed>();
  packed->cell = cell;
  packed->cell.topology = nullptr;  // need not outlive this call
  packed->problem = packingProblem(cell, membersOnly);
  if (!somethingMoves(packed->problem)) return {};
  PackingOptions options;
  std::vector<int> stages(kPackingStages.begin(), kPackingStages.end());
  if (packed->problem.hops > kDeepest) {
    options.stages = 8 * packed->problem.hops;
    stages = {options.stages};
  }
  packed->found = packRoutes(packed->problem, options);
  std::vector<Candidate> candidates;
  for (const int k : stages) {
    Packing packing = repack(packed->problem, packed->found.routes, k);
    if (packing.amounts.empty()) continue;
    packing = pruned(*packed, packing);
    candidates.push_back(candidateOf(packed, packing));
  }
  return candidates;
}

// With a bus that all transfers share, a hop more is a load more. Regular cells have formulas, but
// for several groups that leave ranks idle.
std::vector<Candidate> packingCandidates(const Cell& cell) {
  if (cell.topology == nullptr || cell.topology->bus > 0) return {};
  const bool formula = cell.regular() && (cell.single() || cell.coversAllRanks());
  if (cell.ranks > kPackingRanks || formula) return {};
  return packedCandidates(cell, false);
}

}  // namespace byway
