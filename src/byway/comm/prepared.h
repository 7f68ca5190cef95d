// SPDX-License-Identifier: BSD-3-Clause
// Calls of the whole communicator that were made before: what repeats is looked up once.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "byway/base/types.h"
#include "byway/schedule/bind.h"
#include "byway/transport/wire.h"

namespace byway {

// What tells one call from another, but for the memory it works on.
struct CallKey {
  Collective collective = Collective::AllReduce;
  DType dtype = DType::UInt8;
  ReduceOp op = ReduceOp::Sum;
  bool barrier = false;
  int root = 0;
  std::uint64_t count = 0;
  bool operator==(const CallKey&) const = default;
};

// The bytes of a rank's regions, and where the block lies that both hold.
struct Layout {
  std::uint64_t inputBytes = 0, outputBytes = 0;
  std::uint64_t ownInInput = 0, ownInOutput = 0;
};

struct PreparedCall {
  std::shared_ptr<const VerifiedSchedule> schedule;
  std::shared_ptr<const Binding> bound;
  Stamp stamp{};
  Layout layout;
};

// Any thread.
class PreparedCalls {
 public:
  std::shared_ptr<const PreparedCall> find(const CallKey& key) const;
  void keep(const CallKey& key, PreparedCall call);
  void clear();  // plans may be others from now on

 private:
  struct Hash {
    std::size_t operator()(const CallKey& key) const;
  };
  static constexpr std::size_t kMost = 1024;
  mutable std::mutex mutex_;
  std::unordered_map<CallKey, std::shared_ptr<const PreparedCall>, Hash> calls_;
};

}  // namespace byway
