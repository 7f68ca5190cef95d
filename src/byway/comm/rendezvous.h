// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a new communicator find each other and agree on its settings.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "byway/comm/store.h"

namespace byway {

// What must be the same on all ranks, as (name, value) in words.
using Settings = std::vector<std::pair<std::string, std::string>>;

struct Meeting {
  std::uint64_t id = 0;                // of the communicator; new for every meeting
  std::vector<std::string> addresses;  // per rank of the communicator
};

// Leaves this rank's record under `name`, reads all others, and compares settings. Names may be
// used again: each use has a number of its own, which the first rank draws. When all have met, or
// the meeting has failed, nothing of it is left in the store. Throws
// Error{Timeout} naming the ranks that did not come and Error{InvalidArgument} naming settings and
// ranks that differ, the same on every rank.
Meeting meet(Store& store, const std::string& name, const std::vector<int>& ranks, int self,
             const std::string& address, const Settings& settings, Seconds timeout);

}  // namespace byway
