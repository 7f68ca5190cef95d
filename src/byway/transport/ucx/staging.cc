// SPDX-License-Identifier: BSD-3-Clause
#include "byway/transport/ucx/staging.h"

#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace byway::ucx {
namespace {

// From here on what is gathered does not stay in a core's cache, and storing past the caches spares
// reading the target first: a third of the traffic.
constexpr std::size_t kStreamedBytes = std::size_t{4} << 20;

#if defined(__SSE2__)
void copyStreamed(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64, kAhead = 512;
  const std::size_t misfit = reinterpret_cast<std::uintptr_t>(to) % kLine;
  const std::size_t head = misfit == 0 ? 0 : kLine - misfit;
  if (bytes < head + kLine) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::memcpy(to, from, head);
  std::size_t at = head;
  for (; at + kLine <= bytes; at += kLine) {
    // Past the end of a piece at worst, where a prefetch does no harm.
    _mm_prefetch(reinterpret_cast<const char*>(from + at + kAhead), _MM_HINT_NTA);
    const auto* line = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(line), b = _mm_loadu_si128(line + 1);
    const __m128i c = _mm_loadu_si128(line + 2), d = _mm_loadu_si128(line + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  std::memcpy(to + at, from + at, bytes - at);
}
void endStream() { _mm_sfence(); }
#else
void copyStreamed(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}
void endStream() {}
#endif

}  // namespace

std::size_t bytesOf(std::span<const ConstBuffer> pieces) {
  std::size_t bytes = 0;
  for (const ConstBuffer& piece : pieces) bytes += piece.bytes;
  return bytes;
}

void gatherPieces(std::span<const ConstBuffer> pieces, std::byte* out) {
  const bool isStreamed = bytesOf(pieces) >= kStreamedBytes;
  for (const ConstBuffer& piece : pieces) {
    if (piece.kind == MemoryKind::Host && piece.bytes > 0) {
      const auto* from = static_cast<const std::byte*>(piece.address);
      isStreamed ? copyStreamed(out, from, piece.bytes)
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
