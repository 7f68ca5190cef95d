// SPDX-License-Identifier: BSD-3-Clause
#include "byway/comm/prepared.h"

#include <utility>

#include "byway/base/hash.h"

namespace byway {
namespace {

std::optional<Buffer> onePart(const Region& region) {
  const auto parts = region.parts();
  if (parts.size() > 1) return std::nullopt;
  return parts.empty() ? Buffer{} : parts[0];
}

bool isSame(const std::optional<Buffer>& one, const Region& region) {
  const std::optional<Buffer> other = onePart(region);
  return one && other && one->address == other->address && one->bytes == other->bytes &&
         one->kind == other->kind;
}

}  // namespace

bool PreparedCall::wasOn(const Region& input, const Region& output) const {
  return isSame(input_, input) && isSame(output_, output);
}

void PreparedCall::isOn(const Region& input, const Region& output) {
  input_ = onePart(input);
  output_ = onePart(output);
}

std::size_t PreparedCalls::Hash::operator()(const CallKey& key) const {
  const auto kind = static_cast<std::uint64_t>(key.collective) << 24 |
                    static_cast<std::uint64_t>(key.dtype) << 16 |
                    static_cast<std::uint64_t>(key.op) << 8 | (key.barrier ? 1 : 0);
  return hashMix(kind << 32 | static_cast<std::uint32_t>(key.root), key.count);
}

PreparedCall* PreparedCalls::find(const CallKey& key) {
  if (last_ != nullptr && key == lastKey_) return last_;
  const auto it = calls_.find(key);
  if (it == calls_.end()) return nullptr;
  lastKey_ = key;
  return last_ = &it->second;
}

void PreparedCalls::keep(const CallKey& key, PreparedCall call) {
  if (calls_.size() >= kMost) clear();
  last_ = nullptr;
  calls_.insert_or_assign(key, std::move(call));
}

void PreparedCalls::clear() {
  last_ = nullptr;
  calls_.clear();
}

}  // namespace byway
