// SPDX-License-Identifier: BSD-3-Clause
// Plans by shape: one is made for a range of sizes, so that repeated calls find it.
#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "byway/planner/planner.h"

namespace byway {

class PlanCache {
 public:
  PlanCache(Topology topology, std::string route)
      : topology_(std::move(topology)), route_(std::move(route)) {}

  // blockCounts: elements, per block of makeShape(collective, topology.ranks, groups). Any thread.
  std::shared_ptr<const Plan> get(Collective collective, const std::vector<Group>& groups,
                                  std::span<const std::uint64_t> blockCounts,
                                  std::size_t elementBytes, std::size_t accumulatorBytes,
                                  int liveGroups = 1);
  const Topology& topology() const { return topology_; }
  std::size_t size() const;

 private:
  struct Key {
    std::vector<std::uint64_t> words;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  Topology topology_;
  std::string route_;
  mutable std::mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<const Plan>, KeyHash> plans_;
};

// Sizes that share a plan: the lower edge of an eighth of an octave.
std::uint64_t sizeClass(std::uint64_t bytes);

}  // namespace byway
