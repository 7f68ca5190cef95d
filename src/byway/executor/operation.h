// SPDX-License-Identifier: BSD-3-Clause
// One call of a collective as a state machine: nothing in it waits.
#pragma once

#include <atomic>
#include <complex>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "byway/base/error.h"
#include "byway/executor/fingerprint.h"
#include "byway/executor/segments.h"
#include "byway/kernels/reduce.h"
#include "byway/schedule/bind.h"

namespace byway {

class Channel;

// What a call brings. Buffers must stay until the operation is done; `keepAlive` is held until then.
struct OperationRequest {
  std::shared_ptr<const VerifiedSchedule> schedule;
  std::vector<std::uint64_t> blockCounts;  // elements, per block of the schedule's shape
  DType dtype = DType::UInt8;
  ReduceOp op = ReduceOp::Sum;
  std::complex<double> factor{1.0, 0.0};
  Segments input, output;
  Stamp stamp{};
  MemoryKind stageKind = MemoryKind::Host;
  Seconds timeout = 300;  // from the submission; kNever: none
  std::shared_ptr<void> keepAlive;
};

class Operation : public std::enable_shared_from_this<Operation> {
 public:
  Operation(Channel& channel, OperationRequest request, std::uint64_t sequence, Seconds deadline);
  ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Readable from any thread.
  bool done() const { return done_.load(std::memory_order_acquire); }
  // Once done(): the failure, or null.
  std::exception_ptr error() const { return error_; }
  std::uint64_t sequence() const { return sequence_; }

  // The rest under the engine's lock.
  const Stamp& stamp() const { return request_.stamp; }
  Seconds deadline() const { return deadline_; }
  bool started() const { return started_; }
  bool failed() const { return failure_.has_value(); }
  // Whether this must wait for `earlier`, which is not done.
  bool mustFollow(const Operation& earlier) const;
  // Whether it uses stage memory at all.
  bool needsStage() const;
  // The rank at the other end of one of its transfers.
  int otherRank(const LocalOp& op) const;
  // Begins if its stage memory can be had.
  bool tryStart();
  // Issues what is ready and does a bounded amount of local work; true if anything was done.
  bool advance();
  // Everything is over, or it failed and the transport has let go of its buffers.
  bool finished() const;
  void fail(const Error& error);
  void complete();  // publishes the result; done() from here on
  void release();   // gives back stage memory and what the caller lent
  void whenDone(std::function<void()> callback) { callbacks_.push_back(std::move(callback)); }
  std::vector<std::function<void()>> takeCallbacks() { return std::move(callbacks_); }
  // "waiting to receive from ranks 3, 5 and to be read by 2"
  std::string outstanding() const;

 private:
  struct Round;
  static void transferDone(void* self, std::uint32_t tag, Outcome outcome);

  void planRounds();
  void startRound(std::uint32_t number);
  void issue(Round& round, std::uint32_t index);
  void transfer(Round& round, std::uint32_t index, const Ref& ref, int peer, bool sends);
  void finishOp(Round& round, std::uint32_t index);
  bool localWork(Round& round);
  bool localSlice(Round& round, const Step& step);
  std::vector<Buffer> buffersOf(const Round& round, const Ref& ref) const;
  Buffer place(const Round& round, const Ref& ref, const Piece& piece, std::uint64_t element,
               std::uint64_t elements) const;

  Channel& channel_;
  OperationRequest request_;
  std::uint64_t sequence_;
  Seconds deadline_;
  bool started_ = false;
  std::size_t elementBytes_, accumulatorBytes_;
  std::uint32_t roundCount_ = 1, nextRound_ = 0, roundsDone_ = 0;
  std::uint64_t stageOffset_ = 0, stageBytes_ = 0, roundStage_ = 0;
  std::vector<std::unique_ptr<Round>> rounds_;  // those under way
  std::size_t inFlight_ = 0;                    // transfers that the transport holds
  std::optional<Error> failure_;
  std::exception_ptr error_;
  std::atomic<bool> done_{false};
  std::vector<std::function<void()>> callbacks_;
};

}  // namespace byway
