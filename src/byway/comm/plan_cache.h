// SPDX-License-Identifier: BSD-3-Clause
// Plans by shape: one is made for a range of sizes, so that repeated calls find it.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
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

// A plan that comes from another rank.
class ComingPlan {
 public:
  explicit ComingPlan(PlanRequest request) : request_(std::move(request)) {}
  const PlanRequest& request() const { return request_; }
  // Once, by whoever brings it: a plan, or why there is none.
  void settle(std::shared_ptr<const Plan> plan, std::exception_ptr error);
  // Calls it when settled, from the thread that settles, or at once.
  void whenSettled(std::function<void()> callback);
  // It is settled when the calls that bring it are over, well or not, so within their deadlines.
  void wait();
  // Null while there is none.
  std::shared_ptr<const Plan> plan() const;
  // Once settled; throws what was settled.
  std::shared_ptr<const Plan> get() const;

 private:
  PlanRequest request_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool settled_ = false;
  std::shared_ptr<const Plan> plan_;
  std::exception_ptr error_;
  std::vector<std::function<void()>> waiting_;
};

class PlanCache {
 public:
  // stageQuota, mappedBytes: PlanRequest.
  PlanCache(Topology topology, std::string route, std::uint64_t stageQuota = 0,
            double mappedBytes = 0, bool coresForAll = true)
      : topology_(std::move(topology)),
        route_(std::move(route)),
        stageQuota_(stageQuota),
        mappedBytes_(mappedBytes),
        coresForAll_(coresForAll) {}

  // Any thread. All ranks must come to the same plans, so only calls that all of them make may keep
  // one: get() for a call, prepare() ahead of it, with all the time that an LP takes.
  std::shared_ptr<const Plan> get(const PlanQuery& query);
  std::shared_ptr<const Plan> prepare(const PlanQuery& query);
  // For plans that all ranks must have from one of them, since an LP may make them: a plan that is
  // here or needs no LP, or one that comes; `first` for the call that has to bring it. Every rank
  // must ask in the same order. `ahead`: as for prepare().
  struct Found {
    std::shared_ptr<const Plan> plan;
    std::shared_ptr<ComingPlan> coming;
    bool first = false;
  };
  Found ask(const PlanQuery& query, bool ahead);
  // Undoes a `first` whose plan nobody brings, since the call is wrong.
  void forget(const ComingPlan& coming);
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
  Asked asked(PlanQuery query) const;
  struct Entry {
    std::shared_ptr<const Plan> plan;
    std::shared_ptr<ComingPlan> coming;  // where it came or comes from another rank
  };
  Entry find(const Key& key) const;
  void keep(Key key, Entry entry);
  std::shared_ptr<const Plan> make(Asked asked);

  Topology topology_;
  std::string route_;
  std::uint64_t stageQuota_;
  double mappedBytes_;
  bool coresForAll_;
  mutable std::mutex mutex_;
  std::unordered_map<Key, Entry, KeyHash> plans_;
};

// Sizes that share a plan: the lower edge of an eighth of an octave.
std::uint64_t sizeClass(std::uint64_t bytes);

}  // namespace byway
