// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/segments.h"

#include <algorithm>
#include <utility>

#include "byway/base/error.h"

namespace byway {

void Segments::join(std::span<const Buffer> parts) {
  const auto isFull = [](const Buffer& part) { return part.bytes > 0; };
  const auto full = std::count_if(parts.begin(), parts.end(), isFull);
  if (full == 0) return;
  if (full == 1) {
    only_ = *std::find_if(parts.begin(), parts.end(), isFull);
    bytes_ = only_.bytes;
    return;
  }
  auto many = std::make_shared<Many>();
  for (const Buffer& part : parts) {
    if (part.bytes == 0) continue;
    many->parts.push_back(part);
    many->starts.push_back(bytes_);
    bytes_ += part.bytes;
  }
  many_ = std::move(many);
}

std::size_t Segments::find(std::uint64_t offset) const {
  const auto& starts = many_->starts;
  const auto it = std::upper_bound(starts.begin(), starts.end(), offset);
  return static_cast<std::size_t>(it - starts.begin()) - 1;
}

namespace {

Buffer slice(const Buffer& part, std::uint64_t offset, std::uint64_t bytes) {
  Buffer out = part;
  if (part.kind != MemoryKind::Phantom) {
    out.address = static_cast<std::byte*>(part.address) + offset;
  }
  out.bytes = std::min<std::uint64_t>(bytes, part.bytes - offset);
  return out;
}

}  // namespace

Buffer Segments::at(std::uint64_t offset, std::uint64_t bytes) const {
  BYWAY_ASSERT(offset < bytes_);
  if (!many_) return slice(only_, offset, bytes);
  const std::size_t i = find(offset);
  return slice(many_->parts[i], offset - many_->starts[i], bytes);
}

std::byte* Segments::addressInParts(std::uint64_t offset, std::uint64_t bytes) const {
  if (offset >= bytes_) return nullptr;
  const Buffer part = at(offset, bytes);
  const bool isOne = part.bytes == bytes && part.kind != MemoryKind::Phantom;
  return isOne ? static_cast<std::byte*>(part.address) : nullptr;
}

void Segments::resolve(std::uint64_t offset, std::uint64_t bytes, std::vector<Buffer>& out) const {
  if (bytes == 0) return;
  BYWAY_ASSERT(offset + bytes <= bytes_);
  if (!many_) return out.push_back(slice(only_, offset, bytes));
  for (std::size_t i = find(offset); bytes > 0; ++i) {
    const Buffer part = slice(many_->parts[i], offset - many_->starts[i], bytes);
    out.push_back(part);
    offset += part.bytes;
    bytes -= part.bytes;
  }
}

bool Segments::overlaps(const Segments& other) const {
  for (const Buffer& a : parts()) {
    if (a.kind == MemoryKind::Phantom) continue;
    const auto* begin = static_cast<const std::byte*>(a.address);
    for (const Buffer& b : other.parts()) {
      if (b.kind == MemoryKind::Phantom) continue;
      const auto* first = static_cast<const std::byte*>(b.address);
      if (begin < first + b.bytes && first < begin + a.bytes) return true;
    }
  }
  return false;
}

}  // namespace byway
