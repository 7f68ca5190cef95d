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

// blockSizes: size of each block in any unit (elements, or 1 for a whole). A value at accumulator
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

}  // namespace byway
