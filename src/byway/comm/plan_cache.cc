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

std::shared_ptr<const Plan> PlanCache::get(Collective collective, const std::vector<Group>& groups,
                                           std::span<const std::uint64_t> blockCounts,
                                           std::size_t elementBytes, std::size_t accumulatorBytes,
                                           int liveGroups) {
  std::uint64_t largest = 0;
  for (const std::uint64_t count : blockCounts) largest = std::max(largest, count);
  const std::uint64_t classBytes = sizeClass(largest * elementBytes);
  Key key;
  key.words = {static_cast<std::uint64_t>(collective), classBytes,
               static_cast<std::uint64_t>(elementBytes) << 32 | accumulatorBytes,
               static_cast<std::uint64_t>(liveGroups)};
  for (const Group& group : groups) {
    key.words.push_back(group.ranks.size() << 32 | static_cast<std::uint32_t>(group.root));
    for (const int rank : group.ranks) key.words.push_back(static_cast<std::uint64_t>(rank));
  }
  // Blocks of one size are the rule; only others need their ratios in the key.
  std::vector<std::uint64_t> blockBytes(blockCounts.size(), classBytes);
  const bool equal = std::all_of(blockCounts.begin(), blockCounts.end(),
                                 [&](std::uint64_t count) { return count == largest; });
  for (std::size_t b = 0; !equal && b < blockCounts.size(); ++b) {
    const auto scaled = static_cast<unsigned __int128>(blockCounts[b]) * kRatioSteps;
    const auto ratio = static_cast<std::uint64_t>((scaled + largest - 1) / largest);
    key.words.push_back(ratio);
    blockBytes[b] = static_cast<std::uint64_t>(static_cast<unsigned __int128>(classBytes) * ratio /
                                               kRatioSteps);
    if (ratio > 0) blockBytes[b] = std::max<std::uint64_t>(blockBytes[b], 1);
  }
  {
    const std::scoped_lock lock(mutex_);
    const auto it = plans_.find(key);
    if (it != plans_.end()) return it->second;
  }
  PlanRequest request;
  request.collective = collective;
  request.ranks = topology_.ranks;
  request.groups = groups;
  request.blockBytes = std::move(blockBytes);
  request.partialWeight = static_cast<double>(accumulatorBytes) / static_cast<double>(elementBytes);
  request.liveGroups = liveGroups;
  request.force = route_;
  auto made = std::make_shared<const Plan>(plan(request, topology_));
  const std::scoped_lock lock(mutex_);
  if (plans_.size() >= kMostPlans) plans_.clear();
  return plans_.emplace(std::move(key), std::move(made)).first->second;
}

std::size_t PlanCache::size() const {
  const std::scoped_lock lock(mutex_);
  return plans_.size();
}

}  // namespace byway
