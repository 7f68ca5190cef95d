// SPDX-License-Identifier: BSD-3-Clause
// What the threads of an InprocFabric share: one mailbox for each wire. Private to inproc/.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <variant>
#include <vector>

#include "byway/transport/inproc/inproc_wire.h"

namespace byway::inproc {

// A message on its way, shared by its sender and its receiver.
struct Message {
  WireHeader header;
  PeerId from = -1;
  bool eager = false;
  SendId id = 0;
  std::vector<ConstBuffer> pieces;  // eager: over `copy`
  std::vector<std::byte> copy;
  // Held while bytes are copied out, so that a withdrawal waits for at most one copy.
  std::mutex mutex;
  bool isWithdrawn = false;  // under `mutex`; the pieces must not be read any more
};
using MessagePtr = std::shared_ptr<Message>;

struct Finished {
  SendId id = 0;
  Outcome outcome = Outcome::Ok;
};
struct Withdrawn {
  MessagePtr message;
};
using Item = std::variant<MessagePtr, Finished, Withdrawn>;

// Waits on CLOCK_MONOTONIC, which std::condition_variable offers only through a call that
// ThreadSanitizer of GCC 12 does not know.
class Signal {
 public:
  Signal();
  ~Signal() { pthread_cond_destroy(&condition_); }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  void notify() { pthread_cond_signal(&condition_); }
  // False when `until` has come.
  bool wait(std::unique_lock<std::mutex>& lock, Seconds until);

 private:
  pthread_cond_t condition_;
};

class Mailbox {
 public:
  // False when the owner has closed it.
  bool push(Item item);
  // Moves what has come to the back of `to`.
  void take(std::deque<Item>& to);
  bool empty() const;
  void wake();
  void sleep(Seconds until);
  // Nothing comes in any more; moves the rest to `to`.
  void close(std::deque<Item>& to);

 private:
  mutable std::mutex mutex_;
  Signal signal_;
  std::deque<Item> items_;
  bool wokenUp_ = false;
  bool isClosed_ = false;
};

}  // namespace byway::inproc

struct byway::InprocFabric::Impl {
  std::mutex mutex;
  std::vector<std::shared_ptr<inproc::Mailbox>> mailboxes;  // by PeerId, the same for all wires
};
