// SPDX-License-Identifier: BSD-3-Clause
// Schedules as text that other programs can read, and back.
//
//   {"byway": "schedule", "version": 1, "name": "S3 K=2", "collective": "allreduce", "ranks": 3,
//    "groups": [{"ranks": [0, 1], "root": 0}],
//    "blocks": [{"group": 0, "source": -1, "destination": -1, "shares": [4294967296],
//                "direct_shares": 1}],
//    "phases": [{"transfers": [{"from": REF, "to": REF}],
//                "steps": [{"kind": "reduce", "to": REF, "inputs": [REF, REF], "divisor": 2},
//                          {"kind": "copy", "to": REF, "from": REF, "skip_when_aliased": true}]}],
//    "slots": [0, 0, 2]}
//   REF: {"space": "stage", "width": "accumulator", "rank": 2, "pieces": [[block, share, slot]]};
//   in "input" and "output" a piece is [block, share] and the width is "element".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "byway/schedule/schedule.h"

namespace byway {

// What a file may hold, so that reading and verifying one from anywhere takes bounded memory.
struct ScheduleBounds {
  static constexpr std::size_t kTextBytes = std::size_t{16} << 20;
  static constexpr std::size_t kRanks = 4096;
  static constexpr std::size_t kPhases = 1 << 16;
  static constexpr std::size_t kOperations = 1 << 19;  // transfers and steps, each
  static constexpr std::size_t kPieces = 1 << 21;      // in all refs
  static constexpr std::size_t kSlots = 1 << 20;       // of all ranks
  static constexpr std::size_t kPlaces = 1 << 25;      // ranks times shares of all blocks
};

std::string toJson(const Schedule& schedule);

// Not verified: give the result to verify(). Throws Error{InvalidArgument} that names `source`, the
// place in the text or the document, and the reason. Refs are laid out as ScheduleBuilder does, so
// a schedule read back has its hash.
Schedule scheduleFromJson(std::string_view json, const std::string& source);

}  // namespace byway
