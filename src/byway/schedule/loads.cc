// SPDX-License-Identifier: BSD-3-Clause
#include "byway/schedule/loads.h"

#include <algorithm>
#include <numeric>

namespace byway {

double pieceSize(const Schedule& s, const Piece& piece, std::span<const double> blockSizes) {
  const Block& block = s.shape.blocks[piece.block];
  return static_cast<double>(block.shares[piece.share]) / static_cast<double>(kWhole) *
         blockSizes[piece.block];
}

double Loads::sumOfMax() const { return std::accumulate(phaseMax.begin(), phaseMax.end(), 0.0); }

Loads loadsOf(const Schedule& s, std::span<const double> blockSizes, double accumulatorRatio) {
  Loads loads;
  loads.ranks = s.shape.ranks;
  const auto n = static_cast<std::size_t>(s.shape.ranks);
  loads.total.assign(n * n, 0);
  loads.messages.assign(n, 0);
  for (const Phase& phase : s.phases) {
    std::vector<double> load(n * n, 0);
    for (std::uint32_t i = 0; i < phase.transferCount; ++i) {
      const Transfer& t = s.transfers[phase.firstTransfer + i];
      const auto link =
          static_cast<std::size_t>(t.from.rank) * n + static_cast<std::size_t>(t.to.rank);
      const double weight = t.from.width == Width::Accumulator ? accumulatorRatio : 1.0;
      for (const Piece& piece : s.piecesOf(t.from)) {
        load[link] += weight * pieceSize(s, piece, blockSizes);
      }
      ++loads.messages[static_cast<std::size_t>(t.from.rank)];
    }
    loads.phaseMax.push_back(load.empty() ? 0 : *std::max_element(load.begin(), load.end()));
    for (std::size_t l = 0; l < load.size(); ++l) loads.total[l] += load[l];
    loads.byPhase.push_back(std::move(load));
  }
  return loads;
}

StageNeed stageNeed(const Schedule& s, std::span<const double> blockSizes,
                    double accumulatorRatio) {
  std::vector<std::vector<double>> slots;
  for (const auto count : s.slots) slots.emplace_back(count, 0.0);
  const auto use = [&](const Ref& ref) {
    if (ref.space != Space::Stage) return;
    const double weight = ref.width == Width::Accumulator ? accumulatorRatio : 1.0;
    for (const Piece& piece : s.piecesOf(ref)) {
      double& slot = slots[static_cast<std::size_t>(ref.rank)][piece.slot];
      slot = std::max(slot, weight * pieceSize(s, piece, blockSizes));
    }
  };
  for (const Transfer& t : s.transfers) {
    use(t.from);
    use(t.to);
  }
  for (const Step& step : s.steps) use(step.to);
  for (const Ref& in : s.inputs) use(in);
  // What mapped transfers bring is read where it lies.
  for (const Phase& phase : s.phases) {
    if (phase.protocol != Protocol::Mapped) continue;
    for (auto t = phase.firstTransfer; t < phase.firstTransfer + phase.transferCount; ++t) {
      const Ref& to = s.transfers[t].to;
      if (to.space != Space::Stage) continue;
      for (const Piece& piece : s.piecesOf(to)) {
        slots[static_cast<std::size_t>(to.rank)][piece.slot] = 0;
      }
    }
  }
  StageNeed need;
  for (int r = 0; r < s.shape.ranks; ++r) {
    const auto& mine = slots[static_cast<std::size_t>(r)];
    const double sum = std::accumulate(mine.begin(), mine.end(), 0.0);
    need.any = std::max(need.any, sum);
    if (membershipOf(s.shape, r).group < 0) need.helper = std::max(need.helper, sum);
  }
  return need;
}

Rounds roundsFor(const Schedule& s, std::span<const double> blockBytes, double accumulatorRatio,
                 std::uint64_t quota) {
  constexpr std::uint64_t kAlignBytes = 64;
  std::size_t members = 1;
  for (const Group& g : s.shape.groups) members = std::max(members, g.ranks.size());
  const std::uint32_t slots =
      s.slots.empty() ? 0 : *std::max_element(s.slots.begin(), s.slots.end());
  // A slot may hold one unit of 64 bytes of elements more than its share, and is padded.
  const double slack =
      static_cast<double>(slots) * static_cast<double>(kAlignBytes) * (1.0 + accumulatorRatio);
  const double bytes = std::accumulate(blockBytes.begin(), blockBytes.end(), 0.0);
  const double atMost = bytes * static_cast<double>(members) * accumulatorRatio;
  if (slots == 0 || atMost + slack <= static_cast<double>(quota)) return {};
  const double need = stageNeed(s, blockBytes, accumulatorRatio).any;
  if (need + slack <= static_cast<double>(quota)) return {};
  const std::uint64_t stage = quota / kRoundsInFlight / kAlignBytes * kAlignBytes;
  const double each = static_cast<double>(stage) - slack;
  if (each <= 0) return {0, static_cast<std::uint64_t>(2 * kRoundsInFlight * slack)};
  return {static_cast<std::uint32_t>(need / each) + 1, stage};
}

}  // namespace byway
