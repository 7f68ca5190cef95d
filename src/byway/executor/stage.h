// SPDX-License-Identifier: BSD-3-Clause
// Stage memory of one communicator: taken at first use, never more than its quota, handed out in
// call order so that no call waits for a later one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

namespace byway {

class StageMemory {
 public:
  explicit StageMemory(std::uint64_t quota) : quota_(quota) {}

  std::uint64_t quota() const { return quota_; }
  // Offset of a free region, or nothing when the quota is in use.
  std::optional<std::uint64_t> take(std::uint64_t bytes);
  void give(std::uint64_t offset);
  // The memory behind it all; allocated by the first call. Throws Error{Resource}.
  std::byte* data();
  std::uint64_t peak() const { return peak_; }
  std::uint64_t inUse() const { return inUse_; }

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::uint64_t quota_;
  std::map<std::uint64_t, std::uint64_t> taken_;  // offset -> bytes
  std::uint64_t inUse_ = 0, peak_ = 0;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace byway
