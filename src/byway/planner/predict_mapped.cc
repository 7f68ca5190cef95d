// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/predict_mapped.h"

#include <algorithm>
#include <vector>

#include "byway/schedule/loads.h"
#include "byway/schedule/mapped.h"

namespace byway {
namespace {

// Measured on two cores (docs/host.md, "The cost model"). A phase, for every rank that takes part:
// from the write of one rank to its sight by another, and what an operation costs besides; where
// ranks share cores, also that they have to come by one after the other. A read: that of one
// publication.
constexpr Seconds kPhasePerRank = 0.2e-6;
constexpr Seconds kSharedPerRank = 1e-6;
constexpr Seconds kRead = 0.05e-6;
// Of one core, in the host's rate for messages: what is written to the board, what is read there by
// a copy or a sum, and what is copied from another process's memory, page by page.
constexpr double kWriteFactor = 3;
constexpr double kReadFactor = 3.5;
constexpr double kMemoryFactor = 0.6;
// Cores that work at a time where ranks share them: at least.
constexpr int kFewCores = 2;
// Of sums, after messages.
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
                      std::span<const double> blockBytes, double partialWeight, bool coresForAll) {
  const Publications publications = publicationsOf(s);
  const auto ranks = static_cast<std::size_t>(s.shape.ranks);
  Seconds time = 0;
  double written = 0, read = 0, fetched = 0;  // bytes of all ranks
  std::vector<double> published(ranks);
  for (const Phase& phase : s.phases) {
    if (phase.transferCount == 0) continue;
    const auto bytes = [&](std::uint32_t t) {
      return bytesOf(s, s.transfers[t].from, blockBytes, partialWeight);
    };
    const auto share = [&](std::uint32_t t) {  // of its publication
      return bytes(t) / std::max(1U, publications.readers[t]);
    };
    const auto publisher = [&](std::uint32_t t) -> double& {
      return published[static_cast<std::size_t>(s.transfers[t].from.rank)];
    };
    const auto end = phase.firstTransfer + phase.transferCount;
    std::fill(published.begin(), published.end(), 0.0);
    for (auto t = phase.firstTransfer; t < end; ++t) publisher(t) += share(t);
    time += (kPhasePerRank + (coresForAll ? 0 : kSharedPerRank)) * s.shape.ranks +
            kRead * phase.transferCount;
    for (auto t = phase.firstTransfer; t < end; ++t) {
      const bool isInBoard = bytes(t) <= static_cast<double>(kMappedSlotBytes) ||
                             publisher(t) <= static_cast<double>(kMappedPhaseBytes);
      if (isInBoard) written += share(t);
      (isInBoard ? read : fetched) += bytes(t);
    }
  }
  // What sums read of a rank's own; the rest are the transfers.
  for (const Step& step : s.steps) {
    if (step.kind != StepKind::Reduce) continue;
    for (const Ref& in : s.inputsOf(step)) {
      if (in.space == Space::Input) read += bytesOf(s, in, blockBytes, partialWeight);
    }
  }
  const int cores = coresForAll ? s.shape.ranks : kFewCores;
  const double work = written / kWriteFactor + read / kReadFactor + fetched / kMemoryFactor;
  return time + work / (topology.bus * cores);
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
