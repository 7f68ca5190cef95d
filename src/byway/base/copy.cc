// SPDX-License-Identifier: BSD-3-Clause
#include "byway/base/copy.h"

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>

#include <algorithm>
#endif

namespace byway {

#if defined(__SSE2__)
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kLeast = 4096;  // for a loop of lines

// Whole lines of `to` by `store`, what lies before and behind them by memcpy.
template <typename Store>
void copyLines(std::byte* to, const std::byte* from, std::size_t bytes, const Store& store) {
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(to) % kLine;
  const std::size_t head = std::min(bytes, misaligned == 0 ? 0 : kLine - misaligned);
  std::memcpy(to, from, head);
  to += head;
  from += head;
  bytes -= head;
  for (; bytes >= kLine; to += kLine, from += kLine, bytes -= kLine) {
    const auto* in = reinterpret_cast<const __m128i*>(from);
    auto* out = reinterpret_cast<__m128i*>(to);
    // Not an array: the compiler would keep it in memory.
    const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
    store(out, a);
    store(out + 1, b);
    store(out + 2, c);
    store(out + 3, d);
  }
  std::memcpy(to, from, bytes);
}

}  // namespace

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes < kLeast) {
    std::memcpy(to, from, bytes);
    return;
  }
  copyLines(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes,
            [](__m128i* out, __m128i value) { _mm_store_si128(out, value); });
}

void streamPart(void* to, const void* from, std::size_t bytes) {
  copyLines(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes,
            [](__m128i* out, __m128i value) { _mm_stream_si128(out, value); });
}

void endStream() { _mm_sfence(); }
#else
void copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void streamPart(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void endStream() {}
#endif

void streamCopy(void* to, const void* from, std::size_t bytes) {
  streamPart(to, from, bytes);
  endStream();
}

}  // namespace byway
