// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/stage.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "byway/base/error.h"

namespace byway {

void StageMemory::Free::operator()(std::byte* p) const { std::free(p); }

std::optional<std::uint64_t> StageMemory::take(std::uint64_t bytes) {
  std::uint64_t offset = 0;
  for (const auto& [start, size] : taken_) {
    if (start - offset >= bytes) break;
    offset = start + size;
  }
  if (offset + bytes > quota_) return std::nullopt;
  taken_[offset] = bytes;
  inUse_ += bytes;
  peak_ = std::max(peak_, inUse_);
  return offset;
}

void StageMemory::give(std::uint64_t offset) {
  const auto it = taken_.find(offset);
  BYWAY_ASSERT(it != taken_.end());
  inUse_ -= it->second;
  taken_.erase(it);
}

std::byte* StageMemory::data() {
  if (!memory_) {
    constexpr std::size_t kPage = 4096;
    // Untouched pages cost nothing, so the quota is only a bound.
    const std::size_t bytes = std::max<std::size_t>(kPage, (quota_ + kPage - 1) / kPage * kPage);
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, bytes)));
    if (!memory_) {
      throw Error(ErrorCode::Resource, "no memory for " + std::to_string(bytes) +
                                           " bytes of stage memory; lower the stage quota");
    }
  }
  return memory_.get();
}

}  // namespace byway
