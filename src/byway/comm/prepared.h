// SPDX-License-Identifier: BSD-3-Clause
// Calls of the whole communicator that were made before: what repeats is looked up once.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "byway/base/types.h"
#include "byway/executor/channel.h"

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
  std::shared_ptr<Channel> channel;
  RepeatedCall call;
  Layout layout;
};

// Any thread.
class PreparedCalls {
 public:
  std::shared_ptr<PreparedCall> find(const CallKey& key);
  void keep(const CallKey& key, PreparedCall call);
  void clear();  // plans may be others from now on, or the channel is closed

 private:
  struct Hash {
    std::size_t operator()(const CallKey& key) const;
  };
  static constexpr std::size_t kMost = 1024;
  std::mutex mutex_;
  std::unordered_map<CallKey, std::shared_ptr<PreparedCall>, Hash> calls_;
  // The one that was found last.
  CallKey lastKey_;
  std::shared_ptr<PreparedCall> last_;
};

}  // namespace byway
