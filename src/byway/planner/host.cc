// SPDX-License-Identifier: BSD-3-Clause
// Host: one host whose ranks share memory (docs/host.md). Nothing is sent: every rank publishes
// what is its own, and the others read it, sums where it lies. No trees: all bytes cross the same
// memory.
//
//   allreduce   mapped exchange: every member reads all contributions: least latency
//               mapped two-shot P=n: every member sums its share, then reads those of the others
//   others      mapped P=n: every member reads what it is to have
//
// Pieces are of a size that copies through a ring best; one piece stays in its owner's memory.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "byway/planner/builders.h"
#include "byway/planner/constructions.h"
#include "byway/schedule/mapped.h"

namespace byway {
namespace {

// More ranks would publish more often than a board has places, or fold in blocks.
constexpr int kMostMembers = 16;
// Measured: smaller ones meet the writer's cache, larger ones leave it (docs/host.md).
constexpr double kPieceBytes = 256 * 1024;
// Ranks that share cores change places for every piece, which takes as long as a copy of some ten
// kilobytes: where eight ranks shared two cores pieces of 57 KB made calls slower.
constexpr double kLeastSharedPiece = 96 * 1024;
constexpr int kMostTransfers = 4096;  // so that a plan takes no longer to make than it is worth

bool fits(const Cell& cell) {
  const double bytes = std::accumulate(cell.blockBytes.begin(), cell.blockBytes.end(), 0.0);
  const auto small = [](const Group& group) { return group.size() <= kMostMembers; };
  return bytes * cell.partialWeight <= cell.mappedBytes &&
         std::all_of(cell.groups.begin(), cell.groups.end(), small);
}

// Into how many pieces a publication of `bytes` is cut, where a rank makes `atOnce` in a phase. 1
// where it is small enough, or too large for the ring.
int piecesOf(double bytes, int atOnce, int transfers, bool coresForAll) {
  const double most = static_cast<double>(kMappedPhaseBytes) / atOnce - 64;
  const double piece = std::min(kPieceBytes, most);
  if (bytes <= static_cast<double>(kMappedSlotBytes) || bytes <= piece) return 1;
  if (!coresForAll && piece < kLeastSharedPiece) return 1;
  const int pieces = static_cast<int>(std::ceil(bytes / piece));
  const int allowed =
      std::min(static_cast<int>(kMostPublications) / atOnce, kMostTransfers / transfers);
  return pieces <= allowed ? pieces : 1;
}

}  // namespace

std::vector<Candidate> hostCandidates(const Cell& cell) {
  std::vector<Candidate> candidates;
  if (cell.mappedBytes <= 0 || !fits(cell)) return candidates;
  const auto kept = std::make_shared<const Cell>(cell);
  int members = 2;
  for (const Group& group : cell.groups) members = std::max(members, group.size());
  const double largest = cell.blockBytes.empty()
                             ? 0
                             : *std::max_element(cell.blockBytes.begin(), cell.blockBytes.end());
  if (largest <= 0) return candidates;  // nothing to read: such a call is over at once
  const auto add = [&](std::string name, int pieces, int stages, double value, Build build) {
    if (pieces > 1) name += " P=" + std::to_string(pieces);
    candidates.push_back(makeCandidate(kept, std::move(name), pieces,
                                       {.direct = true,
                                        .stages = stages + pieces - 1,
                                        .value = value,
                                        .hops = stages,
                                        .messages = pieces * stages * (members - 1),
                                        .protocol = Protocol::Mapped},
                                       build));
  };
  const int pairs = members * (members - 1);
  const auto addBoth = [&](const std::string& name, double bytes, int atOnce, int stages,
                           double value, Build build) {
    add(name, 1, stages, value, build);
    const int pieces = piecesOf(bytes, atOnce, stages * pairs, cell.coresForAll);
    if (pieces > 1) add(name, pieces, stages, value, build);
  };
  switch (cell.collective) {
    case Collective::AllReduce:
      add("mapped exchange", 1, 1, 1, buildExchange);
      addBoth("mapped two-shot", largest / members, members, 2, 2.0 / members, buildTwoShot);
      break;
    case Collective::ReduceScatter:
      addBoth("mapped", largest, members - 1, 1, 1, buildOwned);
      break;
    case Collective::Reduce:
      addBoth("mapped", largest, 1, 1, 1, buildOwned);
      break;
    case Collective::AllToAll:
    case Collective::Scatter:
      addBoth("mapped", largest, members - 1, 1, 1, buildMoves);
      break;
    case Collective::Broadcast:
    case Collective::AllGather:
    case Collective::Gather:
      addBoth("mapped", largest, 1, 1, 1, buildMoves);
      break;
  }
  return candidates;
}

}  // namespace byway
