// SPDX-License-Identifier: BSD-3-Clause
#include "byway/transport/ucx/staging.h"

#include <cstring>
#include <utility>

#include "byway/base/copy.h"

namespace byway::ucx {
namespace {

// From here on what is gathered does not stay in a core's cache, and storing past the caches spares
// reading the target first: a third of the traffic.
constexpr std::size_t kStreamedGather = std::size_t{4} << 20;

}  // namespace

std::size_t bytesOf(std::span<const ConstBuffer> pieces) {
  std::size_t bytes = 0;
  for (const ConstBuffer& piece : pieces) bytes += piece.bytes;
  return bytes;
}

void gatherPieces(std::span<const ConstBuffer> pieces, std::byte* out) {
  const bool isStreamed = bytesOf(pieces) >= kStreamedGather;
  for (const ConstBuffer& piece : pieces) {
    if (piece.kind == MemoryKind::Host && piece.bytes > 0) {
      const auto* from = static_cast<const std::byte*>(piece.address);
      isStreamed ? streamPart(out, from, piece.bytes)
                 : static_cast<void>(std::memcpy(out, from, piece.bytes));
    }
    out += piece.bytes;
  }
  if (isStreamed) endStream();
}

StagingPool::Block StagingPool::take(std::size_t bytes) {
  auto best = kept_.end();
  for (auto at = kept_.begin(); at != kept_.end(); ++at) {
    if (at->bytes < bytes || at->bytes / 2 > bytes) continue;
    if (best == kept_.end() || at->bytes < best->bytes) best = at;
  }
  if (best == kept_.end()) return {std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
  Block block = std::move(*best);
  kept_.erase(best);
  keptBytes_ -= block.bytes;
  return block;
}

void StagingPool::give(Block block) {
  if (!block.memory || block.bytes > kKeptBytes) return;
  keptBytes_ += block.bytes;
  kept_.push_back(std::move(block));
  auto end = kept_.begin();
  for (; keptBytes_ > kKeptBytes; ++end) keptBytes_ -= end->bytes;
  kept_.erase(kept_.begin(), end);
}

}  // namespace byway::ucx
