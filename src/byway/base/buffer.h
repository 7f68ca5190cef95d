// SPDX-License-Identifier: BSD-3-Clause
// Where bytes are: the one description of memory that kernels, transports and callers share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace byway {

enum class MemoryKind : std::uint8_t {
  Host,
  Phantom,  // no bytes stand behind it: moves and reductions take their time and do nothing else
};

// A contiguous region. `address` is meaningless for Phantom.
struct Buffer {
  void* address = nullptr;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::Host;
  std::int16_t device = 0;
};

struct ConstBuffer {
  const void* address = nullptr;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::Host;
  std::int16_t device = 0;

  ConstBuffer() = default;
  ConstBuffer(const void* a, std::size_t b, MemoryKind k = MemoryKind::Host, std::int16_t d = 0)
      : address(a), bytes(b), kind(k), device(d) {}
  ConstBuffer(const Buffer& b)  // NOLINT(google-explicit-constructor): read-only view of the same
      : address(b.address), bytes(b.bytes), kind(b.kind), device(b.device) {}
};

}  // namespace byway
