// SPDX-License-Identifier: BSD-3-Clause
// Plans by shape: one is made for a range of sizes, so that repeated calls find it.
#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "byway/planner/planner.h"

namespace byway {

struct PlanQuery {
  Collective collective = Collective::AllReduce;
  const std::vector<Group>& groups;
  // Elements, per block of makeShape(collective, topology.ranks, groups).
  std::span<const std::uint64_t> blockCounts;
  std::size_t elementBytes = 1, accumulatorBytes = 1;
  int liveGroups = 1;
  // Counts that no rank knows all of: the direct template, whatever blockCounts and the forced
  // route are.
  bool ownCounts = false;
};

class PlanCache {
 public:
  PlanCache(Topology topology, std::string route)
      : topology_(std::move(topology)), route_(std::move(route)) {}

  // Any thread. All ranks must come to the same plans, so only calls that all of them make may keep
  // one: get() for a call, prepare() ahead of it, with all the time that an LP takes.
  std::shared_ptr<const Plan> get(const PlanQuery& query);
  std::shared_ptr<const Plan> prepare(const PlanQuery& query);
  // What get() would answer, without keeping it.
  std::shared_ptr<const Plan> look(const PlanQuery& query) const;
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
  struct Asked {
    Key key;
    PlanRequest request;
  };
  Asked ask(PlanQuery query) const;
  std::shared_ptr<const Plan> find(const Key& key) const;
  std::shared_ptr<const Plan> keep(Asked asked);

  Topology topology_;
  std::string route_;
  mutable std::mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<const Plan>, KeyHash> plans_;
};

// Sizes that share a plan: the lower edge of an eighth of an octave.
std::uint64_t sizeClass(std::uint64_t bytes);

}  // namespace byway
