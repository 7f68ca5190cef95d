// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/predict_mapped.h"

#include <algorithm>
#include <vector>

#include "byway/schedule/loads.h"
#include "byway/schedule/mapped.h"

namespace byway {
namespace {

// Measured on two cores (docs/host.md). A phase: from the write of one rank to its sight by
// another, and what an operation costs besides, for every rank that takes part, since ranks may
// have to share cores. A read: that of one publication.
constexpr Seconds kPhasePerRank = 0.2e-6;
constexpr Seconds kRead = 0.05e-6;
// Of the host's rate for messages. Copies through the board: both ends at once, in the cache. From
// another process's memory: page by page.
constexpr double kBoardFactor = 2;
constexpr double kMemoryFactor = 1.5;
constexpr double kSumFactor = 4;
// A message of a few bytes through the executor, to either of its ranks: an allreduce of 8 bytes
// took 13 us with two ranks (2 messages each) and 190 us with eight (14).
constexpr Seconds kMessage = 6e-6;

double bytesOf(const Schedule& s, const Ref& ref, std::span<const double> blockBytes,
               double partialWeight) {
  double bytes = 0;
  for (const Piece& piece : s.piecesOf(ref)) {
    bytes += pieceSize(s, piece, blockBytes);
  }
  return ref.width == Width::Accumulator ? bytes * partialWeight : bytes;
}

Seconds sumsOf(const Schedule& s, const Topology& topology, std::span<const double> blockBytes,
               double partialWeight) {
  double bytes = 0;
  for (const Step& step : s.steps) {
    if (step.kind != StepKind::Reduce) continue;
    for (const Ref& in : s.inputsOf(step)) bytes += bytesOf(s, in, blockBytes, partialWeight);
  }
  return bytes / (topology.bus * kSumFactor);
}

}  // namespace

Seconds predictMapped(const Schedule& s, const Topology& topology,
                      std::span<const double> blockBytes, double partialWeight) {
  const Publications publications = publicationsOf(s);
  Seconds time = 0;
  std::vector<double> published(static_cast<std::size_t>(s.shape.ranks));
  for (const Phase& phase : s.phases) {
    if (phase.transferCount == 0) continue;
    const auto bytes = [&](std::uint32_t t) {
      return bytesOf(s, s.transfers[t].from, blockBytes, partialWeight);
    };
    const auto end = phase.firstTransfer + phase.transferCount;
    std::fill(published.begin(), published.end(), 0.0);
    for (auto t = phase.firstTransfer; t < end; ++t) {
      published[static_cast<std::size_t>(s.transfers[t].from.rank)] +=
          bytes(t) / std::max(1U, publications.readers[t]);
    }
    time += kPhasePerRank * s.shape.ranks + kRead * phase.transferCount;
    for (auto t = phase.firstTransfer; t < end; ++t) {
      const bool isInBoard = bytes(t) <= static_cast<double>(kMappedSlotBytes) ||
                             published[static_cast<std::size_t>(s.transfers[t].from.rank)] <=
                                 static_cast<double>(kMappedPhaseBytes);
      time += bytes(t) / (topology.bus * (isInBoard ? kBoardFactor : kMemoryFactor));
    }
  }
  return time + sumsOf(s, topology, blockBytes, partialWeight);
}

Seconds costOfMessages(const Schedule& s, const Topology& topology,
                       std::span<const double> blockBytes, double partialWeight) {
  std::vector<int> messages(static_cast<std::size_t>(s.shape.ranks), 0);
  for (const Transfer& t : s.transfers) {
    ++messages[static_cast<std::size_t>(t.from.rank)];
    ++messages[static_cast<std::size_t>(t.to.rank)];
  }
  return kMessage * *std::max_element(messages.begin(), messages.end()) +
         sumsOf(s, topology, blockBytes, partialWeight);
}

}  // namespace byway
