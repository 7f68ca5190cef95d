// SPDX-License-Identifier: BSD-3-Clause
// A collective under way.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>

#include "byway/base/clock.h"

namespace byway {

class Engine;
class Operation;

// Copies refer to the same call. A dropped Work still completes. Buffers of the call must stay
// until it is done.
class Work {
 public:
  Work() = default;  // done already
  // Ended well before it was asked for, as call `sequence`.
  explicit Work(std::int64_t sequence) : sequence_(sequence) {}
  Work(std::shared_ptr<Engine> engine, std::shared_ptr<Operation> operation);

  // Waits for the end and throws the call's Error if it failed. From any thread, any number of
  // times. The call's own deadline bounds the wait.
  void wait() const;
  // The same for at most `timeout` seconds; false when that ran out, and it may be called again.
  bool waitFor(Seconds timeout) const;
  bool done() const;
  // Null while under way or after success.
  std::exception_ptr error() const;
  // Calls it when done, on a thread of the library or of another waiter, or at once.
  void whenDone(std::function<void()> callback) const;
  // To be called within such a callback before it waits for what another callback brings: other
  // threads run those from then on. It may wait for a Work without.
  static void callbackMayBlock();
  // The rank that a receive's data came from (receive `index` of a batch), once it is done; else
  // -1.
  int source(std::size_t index = 0) const;
  // The number of the call among the collectives of its communicator; -1 for sends and receives.
  std::int64_t sequence() const;

 private:
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Operation> operation_;  // null: done
  std::int64_t sequence_ = -1;            // where there is none
};

}  // namespace byway
