// SPDX-License-Identifier: BSD-3-Clause
// What a collective operation knows of a round; private to collective_operation.cc and
// collective_mapped.cc.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "byway/executor/channel.h"
#include "byway/executor/collective_operation.h"

namespace byway {

enum class OpState : std::uint8_t {
  Waiting,
  Held,  // a receive that could be posted, but an earlier one from its rank was not
  Issued,
  Done
};

// A queue that keeps its memory.
class IndexQueue {
 public:
  bool empty() const { return head_ == items_.size(); }
  std::size_t size() const { return items_.size() - head_; }
  std::uint32_t front() const { return items_[head_]; }
  void push_back(std::uint32_t index) { items_.push_back(index); }
  void push_front(std::uint32_t index) {
    if (head_ > 0)
      items_[--head_] = index;
    else
      items_.insert(items_.begin(), index);
  }
  void pop_front() {
    if (++head_ == items_.size()) clear();
  }
  void clear() {
    items_.clear();
    head_ = 0;
  }
  void set(const std::vector<std::uint32_t>& items) {
    items_ = items;
    head_ = 0;
  }

 private:
  std::vector<std::uint32_t> items_;
  std::size_t head_ = 0;
};

// Local work in order of readiness, and where the first of it stands.
struct CollectiveOperation::LocalQueue {
  IndexQueue steps;
  std::size_t piece = 0;
  std::uint64_t element = 0;
};

// Where a publication's data lies: not published; in the board's slot or ring; in a copy; in the
// caller's memory.
enum class CollectiveOperation::Published : std::uint8_t { No, InSlot, InRing, InCopy, InMemory };

// Whether a publication goes through the ring, and who reads it there.
struct CollectiveOperation::RingUse {
  bool isKnown = false, isUsed = false;
  std::uint64_t readers = 0;
};

// What a mapped receive found.
struct CollectiveOperation::Located {
  Publication* line = nullptr;
  int from = -1;
  const std::byte* data = nullptr;  // null: in pieces of the publisher's memory
  std::span<const PublishedPiece> pieces;
};

// A schedule bound to one part of the call's data.
struct CollectiveOperation::Round {
  CollectiveOperation* operation = nullptr;
  std::uint32_t number = 0;
  std::shared_ptr<const Binding> bound;
  std::uint64_t stageOffset = 0;
  std::vector<std::uint32_t> waits;
  std::vector<OpState> state;
  IndexQueue ready;  // transfers and steps that may be issued
  LocalQueue steps;
  // Steps that nothing waits for, such as the copy of a rank's own block. Ready from the start,
  // they would hold up the first messages, on a host with more ranks than cores those of others
  // too.
  LocalQueue leisure;
  std::size_t remaining = 0;
  std::vector<Seconds> issuedAt;  // where the channel traces

  // Mapped transfers, as indices of the local program's operations.
  std::vector<std::uint32_t> toPublish;  // sends that wait for space
  std::vector<std::uint32_t> toRead;     // receives whose publication has not come, or is copied
  std::vector<std::uint32_t> toBeTaken;  // sends whose memory or copy the reader may still read
  std::vector<Published> published;      // by publication of this rank
  std::vector<RingUse> ringUse;          // the same
  std::uint32_t ringPhaseEnd = 0;        // of the phase that was looked at last, its transfers' end
  bool ringHoldsPhase = false;
  std::vector<Located> located;  // by operation
  std::vector<std::vector<std::byte>> copies;
  // This rank's data in the slot: what may be needed in all, from where on, and used so far.
  std::uint64_t dataNeed = 0;
  std::optional<std::uint64_t> dataStart;
  std::uint64_t dataUsed = 0;
  std::uint64_t fetched = 0;  // bytes of the first of toRead that is being copied
  unsigned looks = 0;         // for publications, before the wait began
  bool hasWaited = false;     // for a publication, in vain once
  bool isStuck = false;       // a publication cannot be read: the call is about to fail

  void begin();                         // with `bound`
  void beginAfter(std::uint32_t done);  // the first `done` operations of the order
  void forgetCall();                    // that ended well: its queues and lists are empty
  void reset();                         // keeps memory
};

}  // namespace byway
