// SPDX-License-Identifier: BSD-3-Clause
// One communicator as the engine sees it: peers, stage memory, calls under way, and whether it is
// broken. All under the engine's lock.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "byway/executor/collective_operation.h"
#include "byway/executor/control.h"
#include "byway/executor/inquiry.h"
#include "byway/executor/point_to_point.h"
#include "byway/executor/recorder.h"
#include "byway/executor/stage.h"
#include "byway/executor/stream_choice.h"
#include "byway/executor/trace_log.h"
#include "byway/transport/mapped/board.h"
#include "byway/transport/transport.h"

namespace byway {

struct ChannelOptions {
  std::uint64_t id = 0;  // the same on all ranks, different for every communicator
  int rank = 0;
  std::vector<PeerId> peers;  // per rank; the entry at `rank` is not used
  std::uint64_t stageQuota = std::uint64_t{64} << 20;
  Seconds lateAfter = 30;           // a call under way for so long is logged once; kNever: never
  std::size_t recordedCalls = 256;  // that the flight recorder keeps
  std::string recorderFolder;       // where it is written once the channel broke; "": nowhere
  TraceOptions trace;
  std::shared_ptr<Board> board;  // where all ranks have one; null: there are no mapped phases
};

class Channel : public std::enable_shared_from_this<Channel> {
 public:
  Channel(Transport& transport, ChannelOptions options);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  std::shared_ptr<CollectiveOperation> submit(OperationRequest&& request);
  const std::shared_ptr<CollectiveOperation>& submit(RepeatedCall& call, CallData&& data);
  // The rest of a call that was submitted without a schedule; nothing if it is over already.
  void supply(CollectiveOperation& operation, OperationRequest&& request);
  // Sends and receives that begin together, in any order on the two sides.
  std::shared_ptr<Operation> submit(PointToPointRequest&& request);
  bool advance() { return advance(false); }  // of all operations; true if anything was done
  bool advanceAtLeisure();                   // of one that has something to do
  Seconds nextDeadline() const;              // of calls, answers and log lines; kNever: none
  void checkDeadlines(Seconds now);
  // Marks it broken, tells the other ranks if `tell`, and fails everything under way.
  void breakWith(const Error& error, bool tell);
  // A transfer ended other than well; called from inside the transport, acted on in advance().
  void transferFailed(const Operation& operation, bool sends, int other, Outcome outcome);
  // A failure found inside the transport.
  void found(const Error& error);
  // Rank `rank` destroyed its communicator after `calls` calls.
  void goodbye(int rank, std::uint64_t calls, std::uint64_t messages);
  void sayGoodbye();
  // Another rank told that it broke; acted on in advance().
  void reported(const Error& error);
  // This rank's caller got its next call wrong; the others are told.
  void refuse(const Error& error);
  void refused(int rank, std::uint64_t sequence, const std::string& why);
  // Peer `peer` is gone for good; nothing happens if it is no rank of this channel.
  void peerLost(PeerId peer);
  // Another rank asks where this one stands, or answers what this one asked.
  void asked(const ControlMessage& question);
  void answered(const ControlMessage& answer);
  std::uint64_t calls() const { return nextSequence_; }
  // While one exists the channel takes `now` for the time, instead of asking the clock again.
  class Moment {
   public:
    Moment(Channel& channel, Seconds now) : channel_(channel) { channel.now_ = now; }
    ~Moment() { channel_.now_ = kNever; }
    Moment(const Moment&) = delete;
    Moment& operator=(const Moment&) = delete;

   private:
    Channel& channel_;
  };
  // False for a message of a call that differs from this rank's: it must not be received.
  bool dataArrived(const MatchKey& key, const Stamp& stamp);
  // Before a sleep, on the board or in the transport: tells the other ranks what would end it, and
  // looks once more. False: something has come.
  bool prepareSleep(bool onBoard);
  void endSleep();
  // All that its calls under way wait for comes through the board.
  bool usesBoardAlone() const;
  bool idle() const { return operations_.empty() && lingering_.empty(); }
  const std::optional<Error>& broken() const { return broken_; }
  std::size_t operationsUnderWay() const { return operations_.size(); }
  // Moves the callbacks of operations that completed since the last call.
  std::vector<std::function<void()>> takeCallbacks();
  bool hasCallbacks() const { return !callbacks_.empty(); }
  // Whether something has come for a call under way; a hint, and cheap.
  bool hasNews() const;

  Transport& transport() { return transport_; }
  MessageOrder& messages() { return messages_; }
  Board* board() const { return options_.board.get(); }
  const std::shared_ptr<Board>& sharedBoard() const { return options_.board; }
  // Something was written to the board for other ranks: those that sleep are woken in advance().
  void broughtData() { broughtData_ = true; }
  // Where mapped sums put what they read from another rank's memory: `count` parts of
  // kScratchBytes. They do not lie a power of two apart, so that they do not compete for the same
  // cache sets.
  static constexpr std::size_t kScratchBytes = std::size_t{128} << 10;
  static constexpr std::size_t kScratchStride = kScratchBytes + 4096 + 64;
  std::byte* scratch(std::size_t count);
  // How a publication of so many bytes is to be written.
  StreamChoice& streamChoice(std::uint64_t bytes) { return streamChoices_.of(bytes); }
  // Empty, for a list of buffers that is read at once.
  std::vector<Buffer>& buffers() {
    buffers_.clear();
    return buffers_;
  }
  // The same for the operands of a sum.
  struct Operands {
    std::vector<Buffer> from;
    std::vector<ReduceInput> inputs;
  };
  Operands& operands(std::size_t count) {
    operands_.from.assign(count, {});
    operands_.inputs.resize(count);
    return operands_;
  }
  StageMemory& stage() { return stage_; }
  const StageMemory& stage() const { return stage_; }
  TraceLog* trace() { return trace_.get(); }  // null: nobody traces
  std::string recordedCalls() const;          // JSON
  std::uint64_t id() const { return options_.id; }
  int rank() const { return options_.rank; }
  int ranks() const { return static_cast<int>(options_.peers.size()); }
  PeerId peer(int rank) const { return options_.peers[static_cast<std::size_t>(rank)]; }

 private:
  static constexpr std::uint64_t kCallsADone = Board::kDataSlots / 4;
  static constexpr std::size_t kRemembered = 2 * Board::kSlots;

  template <typename Fn>
  bool guarded(const Operation& operation, const Fn& fn);
  Seconds now() const { return now_ == kNever ? transport_.clock().now() : now_; }
  bool advance(bool isCalled);
  void checkUsable() const;
  void begin(const std::shared_ptr<CollectiveOperation>& operation, Seconds now);
  bool isQuiet() const;
  bool endsAtOnce(const std::shared_ptr<CollectiveOperation>& operation);
  void end(const std::shared_ptr<Operation>& entry);
  const Operation* find(std::int64_t sequence) const;
  void add(const std::shared_ptr<Operation>& operation);
  // channel_inquiry.cc
  void ask(const std::shared_ptr<Operation>& operation, bool isLate, Seconds now);
  void conclude();
  RankStanding standing(std::int64_t sequence) const;
  std::vector<int> waitsOf(const Operation& operation) const;
  void announce(const CollectiveOperation& operation);
  void mismatch(std::uint64_t sequence, const Stamp& mine, const MatchKey& key,
                const Stamp& theirs);
  void tellOthers(std::span<const std::byte> message);
  void cancelWhenMay();
  void checkDepartures();
  bool nobodyIsLeft() const;
  void checkRefusal(std::uint64_t sequence);
  void takeFailure(const Error& error, bool isReport);
  void failFrom(const Error& error, bool tell);
  void startWhatMay();
  // channel_mapped.cc
  void updateDone(bool isCalled);
  void wakeSleepers();
  void compareCalls();
  struct Unchecked;
  bool compare(const Unchecked& call);
  bool retire();
  void recordCreated(Operation& operation, Seconds now);
  void recordSupplied(const Operation& operation);
  void recordStarted(const Operation& operation);
  void recordEnded(const Operation& operation);
  void writeRecordsOnce();

  Transport& transport_;
  Seconds now_ = kNever;  // Moment
  ChannelOptions options_;
  StageMemory stage_;
  MessageOrder messages_;  // of point-to-point calls
  Recorder recorder_;
  bool recordsWritten_ = false;
  std::unique_ptr<TraceLog> trace_;
  std::uint64_t nextSequence_ = 0;
  std::vector<std::shared_ptr<Operation>> operations_;  // in call order, not retired
  const Operation* beginning_ = nullptr;                // in endsAtOnce(), not in the list
  std::array<Stamp, kRemembered> history_{};            // by sequence modulo kRemembered
  std::optional<Error> broken_;
  std::int64_t brokenFrom_ = -1;  // the first call that fails by it; -1: all
  bool pendingIsReport_ = false;
  std::optional<Error> pending_;         // found inside the transport, to be acted on outside of it
  std::set<std::uint64_t> refusedHere_;  // calls that this rank refused
  std::map<std::uint64_t, std::string> refusedThere_;  // by another rank, not called here yet
  struct Departure {
    std::uint64_t calls, messages;  // that it made, and sent here, before it left
  };
  std::map<int, Departure> left_;
  std::vector<std::shared_ptr<Operation>> lingering_;  // reported as failed, buffers still in use
  // This rank's question to the others why a call does not complete.
  struct Inquiry {
    std::shared_ptr<Operation> operation;
    bool isLate = false;  // for the log only; else its deadline has passed
    Seconds until = 0;
    std::uint64_t number = 0;
    std::vector<RankStanding> standings;  // by rank
    int missing = 0;                      // answers
  };
  std::optional<Inquiry> inquiry_;
  std::uint64_t inquiries_ = 0;
  // A transfer that another rank gave up: it will have told why, or had no reason.
  std::optional<Error> givenUp_;
  Seconds givenUpUntil_ = kNever;
  Seconds brokenAt_ = 0;
  bool cancelled_ = false;  // the transport was told, after the break
  std::vector<std::function<void()>> callbacks_;
  std::vector<std::byte> scratch_;
  std::vector<Buffer> buffers_;
  Operands operands_;
  StreamChoices streamChoices_;
  bool broughtData_ = false, broughtSpace_ = false;
  // Calls that are over here and in which this rank did not hear from every other: they may have
  // made another call, which shows once they are over there, too.
  struct Unchecked {
    std::uint64_t sequence = 0;
    Stamp stamp{};
    std::uint64_t stampHash = 0;
  };
  std::deque<Unchecked> unchecked_;
};

}  // namespace byway
