// SPDX-License-Identifier: BSD-3-Clause
// Calls of the whole communicator that were made before: what repeats is looked up once.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "byway/base/types.h"
#include "byway/comm/communicator.h"
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
  // Memory in one part each that was checked for it: the same need not be checked again.
  bool wasOn(const Region& input, const Region& output) const;
  void isOn(const Region& input, const Region& output);

 private:
  std::optional<Buffer> input_, output_;
};

// Under the engine's lock, which whoever finds a call needs anyway to make it.
class PreparedCalls {
 public:
  // Null where there is none. Until the next keep() or clear().
  PreparedCall* find(const CallKey& key);
  void keep(const CallKey& key, PreparedCall call);
  void clear();  // plans may be others from now on, or the channel is closed

 private:
  struct Hash {
    std::size_t operator()(const CallKey& key) const;
  };
  static constexpr std::size_t kMost = 1024;
  std::unordered_map<CallKey, PreparedCall, Hash> calls_;
  // The one that was found last.
  CallKey lastKey_;
  PreparedCall* last_ = nullptr;
};

}  // namespace byway
