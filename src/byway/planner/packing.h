// SPDX-License-Identifier: BSD-3-Clause
// The packing LP as a construction: for whatever has no formula.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "byway/planner/construction.h"

namespace byway {

inline constexpr std::array kPackingStages{4, 8, 16, 24, 32};
// Cells of more ranks get candidates only where they are asked for.
inline constexpr int kPackingRanks = 8;

// For any cell with a topology that has data to move, regular or not. `membersOnly`: data stays on
// links between members of its group ("direct packing"). Throws Error{InvalidArgument} naming the
// ranks when some member cannot be reached. Deterministic on one machine.
std::vector<Candidate> packedCandidates(const Cell& cell, bool membersOnly);

// How many LPs this process has solved so far, for tests of who pays for one.
std::uint64_t packingSolves();

}  // namespace byway
