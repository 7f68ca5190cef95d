// SPDX-License-Identifier: BSD-3-Clause
#include "byway/kernels/stream_copy.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace byway {

void streamCopy(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(out) % kLine;
  const std::size_t head = std::min(bytes, misaligned == 0 ? 0 : kLine - misaligned);
  std::memcpy(out, in, head);
  out += head;
  in += head;
  bytes -= head;
  for (; bytes >= kLine; out += kLine, in += kLine, bytes -= kLine) {
    __m128i part[4];
    for (int i = 0; i < 4; ++i) part[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in) + i);
    for (int i = 0; i < 4; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(out) + i, part[i]);
  }
  _mm_sfence();
  std::memcpy(out, in, bytes);
}

}  // namespace byway
