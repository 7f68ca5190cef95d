// SPDX-License-Identifier: BSD-3-Clause
// What a schedule puts on each directed link, phase by phase.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "byway/schedule/schedule.h"

namespace byway {

struct Loads {
  int ranks = 0;
  // [phase][from * ranks + to], in the unit of blockSizes.
  std::vector<std::vector<double>> byPhase;
  std::vector<double> total;            // over phases
  std::vector<double> phaseMax;         // the largest load of any link in each phase
  std::vector<std::uint32_t> messages;  // per rank: messages sent
  double sumOfMax() const;              // the schedule's value: its time on links of rate 1
};

// The piece's part of its block. blockSizes: size of each block in any unit (elements, or 1 for a
// whole).
double pieceSize(const Schedule& schedule, const Piece& piece, std::span<const double> blockSizes);

// blockSizes: as above. A value at accumulator
// width weighs accumulatorRatio times its elements.
Loads loadsOf(const Schedule& schedule, std::span<const double> blockSizes,
              double accumulatorRatio = 1.0);

// Largest stage memory of any rank that is not a member (helpers) and of any rank, as a multiple
// of the unit: every slot at the largest share it ever holds.
struct StageNeed {
  double helper = 0, any = 0;
};
StageNeed stageNeed(const Schedule& schedule, std::span<const double> blockSizes,
                    double accumulatorRatio = 1.0);

// How a call is cut so that no rank holds more than `quota` bytes of stage memory: all at once, or
// in rounds with a part of every block each, of which kRoundsInFlight are under way.
struct Rounds {
  std::uint32_t count = 1;  // 0: the quota is too small; `stage` bytes would do
  std::uint64_t stage = 0;  // of each that is under way; 0 where there is only one
};
inline constexpr std::uint32_t kRoundsInFlight = 2;
inline constexpr std::uint64_t kStageQuota = std::uint64_t{64} << 20;  // where none is set
// The same on all ranks: it follows from the largest need of any. blockBytes: bytes of each block.
Rounds roundsFor(const Schedule& schedule, std::span<const double> blockBytes,
                 double accumulatorRatio, std::uint64_t quota);

}  // namespace byway
