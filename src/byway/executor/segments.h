// SPDX-License-Identifier: BSD-3-Clause
// A buffer in parts: what a call binds as Input or Output.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "byway/base/buffer.h"

namespace byway {

// The concatenation of its parts. Parts of no bytes are allowed.
class Segments {
 public:
  Segments() = default;
  explicit Segments(std::span<const Buffer> parts) {
    if (parts.size() != 1) {
      join(parts);
    } else if (parts[0].bytes > 0) {
      only_ = parts[0];
      bytes_ = only_.bytes;
    }
  }

  std::uint64_t bytes() const { return bytes_; }
  bool empty() const { return bytes_ == 0; }
  std::span<const Buffer> parts() const {
    return many_ ? std::span<const Buffer>(many_->parts) : std::span(&only_, empty() ? 0 : 1);
  }

  // Where [offset, offset + bytes) lies, if that is one place of the host's memory; else null.
  std::byte* addressOf(std::uint64_t offset, std::uint64_t bytes) const {
    if (many_) return addressInParts(offset, bytes);
    if (only_.kind == MemoryKind::Phantom || offset + bytes > bytes_) return nullptr;
    return static_cast<std::byte*>(only_.address) + offset;
  }
  // The part that holds byte `offset`, from there on and at most `bytes` long.
  Buffer at(std::uint64_t offset, std::uint64_t bytes) const;
  // Appends the regions that make up [offset, offset + bytes).
  void resolve(std::uint64_t offset, std::uint64_t bytes, std::vector<Buffer>& out) const;
  // Whether any byte of one is a byte of the other. Phantom memory overlaps nothing.
  bool overlaps(const Segments& other) const;

 private:
  void join(std::span<const Buffer> parts);
  std::byte* addressInParts(std::uint64_t offset, std::uint64_t bytes) const;
  std::size_t find(std::uint64_t offset) const;
  struct Many {
    std::vector<Buffer> parts;
    std::vector<std::uint64_t> starts;
  };
  Buffer only_;                       // where there is one part alone, as is the rule
  std::shared_ptr<const Many> many_;  // else
  std::uint64_t bytes_ = 0;
};

}  // namespace byway
