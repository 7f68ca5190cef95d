// SPDX-License-Identifier: BSD-3-Clause
#include "byway/comm/plan_cache.h"

#include <algorithm>
#include <bit>

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

PlanCache::Asked PlanCache::ask(PlanQuery query) const {
  std::uint64_t largest = 0;
  const std::vector<std::uint64_t> ones(query.ownCounts ? query.blockCounts.size() : 0, 1);
  if (query.ownCounts) query.blockCounts = ones;
  for (const std::uint64_t count : query.blockCounts) largest = std::max(largest, count);
  const std::uint64_t classBytes = sizeClass(largest * query.elementBytes);
  Asked asked;
  auto& words = asked.key.words;
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
  asked.request.collective = query.collective;
  asked.request.ranks = topology_.ranks;
  asked.request.groups = query.groups;
  asked.request.blockBytes = std::move(blockBytes);
  asked.request.partialWeight =
      static_cast<double>(query.accumulatorBytes) / static_cast<double>(query.elementBytes);
  asked.request.liveGroups = query.liveGroups;
  asked.request.onCallPath = true;
  asked.request.force = query.ownCounts ? "direct" : route_;
  return asked;
}

std::shared_ptr<const Plan> PlanCache::find(const Key& key) const {
  const std::scoped_lock lock(mutex_);
  const auto it = plans_.find(key);
  return it != plans_.end() ? it->second : nullptr;
}

std::shared_ptr<const Plan> PlanCache::keep(Asked asked) {
  auto made = std::make_shared<const Plan>(plan(asked.request, topology_));
  const std::scoped_lock lock(mutex_);
  if (plans_.size() >= kMostPlans) plans_.clear();
  return plans_.insert_or_assign(std::move(asked.key), std::move(made)).first->second;
}

std::shared_ptr<const Plan> PlanCache::get(const PlanQuery& query) {
  Asked asked = ask(query);
  if (auto known = find(asked.key)) return known;
  return keep(std::move(asked));
}

std::shared_ptr<const Plan> PlanCache::prepare(const PlanQuery& query) {
  Asked asked = ask(query);
  asked.request.onCallPath = false;
  return keep(std::move(asked));
}

std::shared_ptr<const Plan> PlanCache::look(const PlanQuery& query) const {
  const Asked asked = ask(query);
  if (auto known = find(asked.key)) return known;
  return std::make_shared<const Plan>(plan(asked.request, topology_));
}

std::size_t PlanCache::size() const {
  const std::scoped_lock lock(mutex_);
  return plans_.size();
}

}  // namespace byway
