// SPDX-License-Identifier: BSD-3-Clause
// The files that BYWAY_TRACE makes ranks leave, read back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "byway/base/clock.h"

namespace byway::tools {

struct TracedCall {
  std::int64_t sequence = -1;
  std::string call, route, plan, state;
  std::uint64_t bytes = 0;
  Seconds created = 0, started = 0, ended = 0;
};

struct TracedTransfer {
  bool sends = false;
  std::int64_t sequence = -1;
  std::uint64_t id = 0, tag = 0, bytes = 0, pieces = 0;
  int peer = 0, phase = -1, round = 0;
  std::int64_t block = -1, share = -1;
  Seconds issued = 0, done = 0;
};

struct TracedStep {
  bool reduces = false;
  std::int64_t sequence = -1;
  std::uint64_t id = 0, inputs = 0, bytes = 0;
  int phase = -1, round = 0;
  Seconds start = 0, end = 0;
};

// Of one communicator on one rank.
struct TracePart {
  std::string communicator, name, boot;
  int rank = 0, ranks = 0, process = 0;
  std::int64_t pid = 0;
  Seconds realtime = 0;  // minus the monotonic clock that the times are of
  std::vector<TracedCall> calls;
  std::vector<TracedTransfer> transfers;
  std::vector<TracedStep> steps;
};

// All of a folder, by process. Throws Error{InvalidArgument} naming file, line and reason.
std::vector<TracePart> readParts(const std::string& folder);

}  // namespace byway::tools
