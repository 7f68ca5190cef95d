// SPDX-License-Identifier: BSD-3-Clause
// What `pg_options` may say. Empty texts leave the choice to the environment (docs/environment.md).
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "byway/comm/communicator.h"

namespace byway::pytorch {

struct GroupOptions final : c10d::Backend::Options {
  explicit GroupOptions(std::string name = "byway",
                        std::chrono::milliseconds time = kBackendDefaultTimeout)
      : c10d::Backend::Options(std::move(name), time) {}

  std::string topology;  // as BYWAY_TOPOLOGY
  // The group's ranks in the topology, where that describes more than the group.
  std::vector<int> topologyRanks;
  std::string pace;   // as BYWAY_PACE
  std::string route;  // "direct", or a construction's name; "" chooses
  std::uint64_t stageQuota = std::uint64_t{64} << 20;  // bytes
  // Lets ranks tell each other the sizes that each knows its own part of (gather, scatter,
  // all_to_all with unequal sizes), which costs a message and lets helpers carry part of the call.
  bool exchangeCounts = false;
};

// Options of this type as they are; of another type (or none) with what the base class has.
c10::intrusive_ptr<GroupOptions> optionsFrom(
    const c10::intrusive_ptr<c10d::Backend::Options>& options, const std::string& name);

CommunicatorOptions communicatorOptions(const GroupOptions& options);

}  // namespace byway::pytorch
