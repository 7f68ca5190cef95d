// SPDX-License-Identifier: BSD-3-Clause
// One call as a state machine: nothing in it waits. Collectives and point-to-point calls are its
// two kinds.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "byway/base/clock.h"
#include "byway/base/error.h"
#include "byway/executor/recorder.h"
#include "byway/executor/segments.h"
#include "byway/transport/wire.h"

namespace byway {

class Channel;

class Operation : public std::enable_shared_from_this<Operation> {
 public:
  // sequence: the number of the call among those that all ranks make, or kUnnumbered.
  static constexpr std::int64_t kUnnumbered = -1;
  Operation(Channel& channel, std::int64_t sequence, const Stamp& stamp, Seconds deadline,
            std::shared_ptr<void> keepAlive);
  virtual ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Readable from any thread.
  bool done() const { return done_.load(std::memory_order_acquire); }
  // Once done(): the failure, or null.
  std::exception_ptr error() const { return error_; }
  std::int64_t sequence() const { return sequence_; }
  // Once done(): the rank that a receive's data came from (part `index` of a batch).
  virtual int sourceOf(std::size_t /*index*/) const { return -1; }

  // The rest under the engine's lock.
  const Stamp& stamp() const { return stamp_; }
  // Whether it is known what its messages should carry, and what the one with this key should.
  virtual bool comparable() const { return true; }
  virtual Stamp messageStamp(const MatchKey& /*key*/) const { return stamp_; }
  // For calls that are completed by Channel::supply.
  void setStamp(const Stamp& stamp) { stamp_ = stamp; }
  Seconds deadline() const { return deadline_; }
  // When it is time to log that it is late; kNever once that was done.
  Seconds lateAt() const { return lateAt_; }
  void setLateAt(Seconds at) { lateAt_ = at; }
  bool started() const { return started_; }
  bool failed() const { return failure_.has_value(); }
  // What the call reads and writes, for the order among calls on the same memory.
  virtual const Segments& reads() const = 0;
  virtual const Segments& writes() const = 0;
  // Whether it has a receive from `rank` for which no message came.
  virtual bool awaitsMessageOf(int /*rank*/) const { return false; }
  // The same for a receive that takes a message from whichever rank.
  virtual bool awaitsAnybody() const { return false; }
  // Whether a message that came is being received.
  virtual bool receives() const { return false; }
  virtual bool needsStage() const { return false; }
  // Begins if what it needs can be had; false: try again later.
  virtual bool tryStart() = 0;
  // Issues what is ready and does a bounded amount of local work; true if anything was done.
  virtual bool advance() = 0;
  // Does a bounded amount of what nobody waits for yet; false if there is none. For moments in
  // which there is nothing else to do.
  virtual bool advanceAtLeisure() { return false; }
  // Every part is over.
  virtual bool ended() const = 0;
  // The ranks whose data or readiness it waits for; empty also while it works itself.
  virtual std::set<int> waitsFor() const = 0;
  // In words, for people: "waiting for data from ranks 3, 5".
  virtual std::string outstanding() const = 0;
  virtual std::string describe() const = 0;
  // With its number: "call 7 (allreduce of 4 float32 (sum))".
  std::string name() const;
  // What the flight recorder keeps of the call itself.
  virtual void describe(CallRecord& record) const = 0;
  // Other ranks must not use what they read of it from now on; before a failure is reported.
  virtual void withdraw() {}
  // Whether it waits for other ranks to be done with an earlier call before it can publish.
  virtual bool awaitsSpace() const { return false; }
  // Whether messages are part of it; else all it waits for comes through the board.
  virtual bool usesTransport() const { return true; }
  // Whether it reads what each other rank publishes for the call, and so that rank's fingerprint.
  virtual bool hearsAll() const { return true; }
  // Of stamp(), for the board.
  virtual std::uint64_t stampHash() const { return 0; }
  // Gives back what it holds; after finished().
  virtual void release();
  // A hint, for a wait that spins: whether advance() would find that something has come.
  virtual bool hasNews() const { return true; }

  bool mustFollow(const Operation& earlier) const;
  // Ended, or failed and the transport has let go of its buffers.
  bool finished() const { return failed() ? inFlight_ == 0 : ended(); }
  void fail(const Error& error);
  void complete();  // publishes the result; done() from here on
  const std::optional<Error>& failure() const { return failure_; }
  // Its number in the channel's recorder.
  std::uint64_t record() const { return record_; }
  void setRecord(std::uint64_t number) { record_ = number; }
  void whenDone(std::function<void()> callback) { callbacks_.push_back(std::move(callback)); }
  bool hasCallbacks() const { return !callbacks_.empty(); }
  std::vector<std::function<void()>> takeCallbacks() { return std::move(callbacks_); }

 protected:
  Channel& channel_;
  // The object of a call that is done, for the next one.
  void renew(std::int64_t sequence, Seconds deadline, std::shared_ptr<void> keepAlive);
  bool started_ = false;
  std::size_t inFlight_ = 0;  // transfers that the transport holds

 private:
  std::int64_t sequence_;
  Stamp stamp_;
  Seconds deadline_;
  Seconds lateAt_ = kNever;
  std::uint64_t record_ = 0;
  std::shared_ptr<void> keepAlive_;
  std::optional<Error> failure_;
  std::exception_ptr error_;
  std::atomic<bool> done_{false};
  std::vector<std::function<void()>> callbacks_;
};

}  // namespace byway
