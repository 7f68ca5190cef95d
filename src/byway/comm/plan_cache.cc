// SPDX-License-Identifier: BSD-3-Clause
#include "byway/comm/plan_cache.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "byway/base/hash.h"

namespace byway {
namespace {

constexpr std::uint64_t kRatioSteps = 64;
constexpr std::size_t kMostPlans = 4096;

}  // namespace

std::uint64_t sizeClass(std::uint64_t bytes) {
  constexpr int kBits = 4;  // the leading one and three more
  const int width = std::bit_width(bytes);
  if (width <= kBits) return bytes;
  return bytes >> (width - kBits) << (width - kBits);
}

std::size_t PlanCache::KeyHash::operator()(const Key& key) const {
  std::uint64_t h = 0;
  for (const std::uint64_t word : key.words) h = hashMix(h, word);
  return h;
}

PlanCache::Asked PlanCache::asked(PlanQuery query) const {
  std::uint64_t largest = 0;
  const std::vector<std::uint64_t> ones(query.ownCounts ? query.blockCounts.size() : 0, 1);
  if (query.ownCounts) query.blockCounts = ones;
  for (const std::uint64_t count : query.blockCounts) largest = std::max(largest, count);
  const std::uint64_t classBytes = sizeClass(largest * query.elementBytes);
  Asked result;
  auto& words = result.key.words;
  words = {static_cast<std::uint64_t>(query.collective), classBytes,
           static_cast<std::uint64_t>(query.elementBytes) << 32 | query.accumulatorBytes,
           static_cast<std::uint64_t>(query.liveGroups) << 1 | (query.ownCounts ? 1 : 0)};
  for (const Group& group : query.groups) {
    words.push_back(group.ranks.size() << 32 | static_cast<std::uint32_t>(group.root));
    for (const int rank : group.ranks) words.push_back(static_cast<std::uint64_t>(rank));
  }
  // Blocks of one size are the rule; only others need their ratios in the key.
  std::vector<std::uint64_t> blockBytes(query.blockCounts.size(), classBytes);
  const bool equal = std::all_of(query.blockCounts.begin(), query.blockCounts.end(),
                                 [&](std::uint64_t count) { return count == largest; });
  for (std::size_t b = 0; !equal && b < blockBytes.size(); ++b) {
    const auto scaled = static_cast<unsigned __int128>(query.blockCounts[b]) * kRatioSteps;
    const auto ratio = static_cast<std::uint64_t>((scaled + largest - 1) / largest);
    words.push_back(ratio);
    blockBytes[b] = static_cast<std::uint64_t>(static_cast<unsigned __int128>(classBytes) * ratio /
                                               kRatioSteps);
    if (ratio > 0) blockBytes[b] = std::max<std::uint64_t>(blockBytes[b], 1);
  }
  result.request.collective = query.collective;
  result.request.ranks = topology_.ranks;
  result.request.groups = query.groups;
  result.request.blockBytes = std::move(blockBytes);
  result.request.partialWeight =
      static_cast<double>(query.accumulatorBytes) / static_cast<double>(query.elementBytes);
  result.request.liveGroups = query.liveGroups;
  result.request.onCallPath = true;
  result.request.force = query.ownCounts ? "direct" : route_;
  result.request.stageQuota = stageQuota_;
  result.request.coresForAll = coresForAll_;
  // By own counts nobody knows whether all that is published fits.
  result.request.mappedBytes = query.ownCounts && std::isfinite(mappedBytes_) ? 0 : mappedBytes_;
  return result;
}

PlanCache::Entry PlanCache::find(const Key& key) const {
  const std::scoped_lock lock(mutex_);
  const auto it = plans_.find(key);
  return it != plans_.end() ? it->second : Entry{};
}

void PlanCache::keep(Key key, Entry entry) {
  const std::scoped_lock lock(mutex_);
  // Those of other ranks stay, so that all ranks know the same of them.
  const auto it = plans_.find(key);
  if (it != plans_.end() && it->second.coming && !entry.coming) return;
  if (plans_.size() >= kMostPlans) {
    std::erase_if(plans_, [](const auto& one) { return one.second.coming == nullptr; });
  }
  plans_.insert_or_assign(std::move(key), std::move(entry));
}

std::shared_ptr<const Plan> PlanCache::make(Asked asked) {
  auto made = std::make_shared<const Plan>(plan(asked.request, topology_));
  keep(std::move(asked.key), {made, nullptr});
  return made;
}

std::shared_ptr<const Plan> PlanCache::get(const PlanQuery& query) {
  Asked want = asked(query);
  const Entry known = find(want.key);
  if (known.plan) return known.plan;
  if (known.coming && known.coming->plan()) return known.coming->plan();
  return make(std::move(want));
}

std::shared_ptr<const Plan> PlanCache::prepare(const PlanQuery& query) {
  Asked want = asked(query);
  want.request.onCallPath = false;
  return make(std::move(want));
}

PlanCache::Found PlanCache::ask(const PlanQuery& query, bool ahead) {
  Asked want = asked(query);
  want.request.onCallPath = !ahead;
  if (!ahead) {
    const Entry known = find(want.key);
    if (known.plan) return {known.plan, nullptr, false};
    if (known.coming) {
      if (auto plan = known.coming->plan()) return {std::move(plan), nullptr, false};
      return {nullptr, known.coming, false};
    }
  }
  if (!mayPack(want.request, topology_)) return {make(std::move(want)), nullptr, false};
  auto coming = std::make_shared<ComingPlan>(want.request);
  keep(want.key, {nullptr, coming});
  return {nullptr, std::move(coming), true};
}

void PlanCache::forget(const ComingPlan& coming) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(plans_, [&](const auto& one) { return one.second.coming.get() == &coming; });
}

std::shared_ptr<const Plan> PlanCache::look(const PlanQuery& query) const {
  const Asked want = asked(query);
  const Entry known = find(want.key);
  if (known.plan) return known.plan;
  if (known.coming && known.coming->plan()) return known.coming->plan();
  return std::make_shared<const Plan>(plan(want.request, topology_));
}

std::size_t PlanCache::size() const {
  const std::scoped_lock lock(mutex_);
  return plans_.size();
}

void ComingPlan::settle(std::shared_ptr<const Plan> plan, std::exception_ptr error) {
  std::vector<std::function<void()>> waiting;
  {
    const std::scoped_lock lock(mutex_);
    settled_ = true;
    plan_ = std::move(plan);
    error_ = std::move(error);
    waiting.swap(waiting_);
  }
  changed_.notify_all();
  for (const auto& callback : waiting) callback();
}

void ComingPlan::whenSettled(std::function<void()> callback) {
  {
    const std::scoped_lock lock(mutex_);
    if (!settled_) {
      waiting_.push_back(std::move(callback));
      return;
    }
  }
  callback();
}

void ComingPlan::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return settled_; });
}

std::shared_ptr<const Plan> ComingPlan::plan() const {
  const std::scoped_lock lock(mutex_);
  return plan_;
}

std::shared_ptr<const Plan> ComingPlan::get() const {
  const std::scoped_lock lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  return plan_;
}

}  // namespace byway
