// SPDX-License-Identifier: BSD-3-Clause
// One call of a collective: a rank's part of a verified schedule, bound to the call's data.
#pragma once

#include <complex>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "byway/executor/fingerprint.h"
#include "byway/executor/operation.h"
#include "byway/kernels/reduce.h"
#include "byway/schedule/bind.h"

namespace byway {

struct CallData;

// What a call brings. Buffers must stay until the operation is done; `keepAlive` is held until
// then.
struct OperationRequest {
  // Null for a call that depends on what an earlier one brings: it takes its number and its place
  // in the order now, and Engine::supply tells the rest.
  std::shared_ptr<const VerifiedSchedule> schedule;
  // The schedule bound to the call's counts, where the caller keeps it; else blockCounts.
  std::shared_ptr<const Binding> bound;
  std::vector<std::uint64_t> blockCounts;  // elements, per block of the schedule's shape
  // Only the blocks of the rank's own Input and Output have their counts, others 0. The schedule
  // must be a template; every message carries its own count, messages of no elements are sent, too.
  bool ownCounts = false;
  DType dtype = DType::UInt8;
  ReduceOp op = ReduceOp::Sum;
  std::complex<double> factor{1.0, 0.0};
  Segments input, output;
  Stamp stamp{};
  MemoryKind stageKind = MemoryKind::Host;
  Seconds timeout = 300;  // from the submission; kNever: none
  std::shared_ptr<void> keepAlive;
  void take(CallData&& data);
};

// What differs between calls that are otherwise the same.
struct CallData {
  Segments input, output;
  Seconds timeout = 300;
  std::shared_ptr<void> keepAlive;
};

class CollectiveOperation;

// A call that is made again and again: with `bound`, without data. Its last call's object serves
// the next one when nobody else has it any more.
struct RepeatedCall {
  OperationRequest request;
  std::shared_ptr<CollectiveOperation> last;  // under the engine's lock
};

struct Publication;

class CollectiveOperation final : public Operation {
 public:
  CollectiveOperation(Channel& channel, OperationRequest&& request, std::uint64_t sequence,
                      Seconds deadline);
  ~CollectiveOperation() override;

  // Once, for a call that was submitted without a schedule. Input and output must be those of the
  // submission, or memory that no other call touches.
  void supply(OperationRequest&& request);
  // The same call with other data, once it is done.
  bool mayGoAgain() const;
  void goAgain(CallData&& data, std::uint64_t sequence, Seconds deadline);
  bool comparable() const override { return supplied(); }
  bool supplied() const { return request_.schedule != nullptr; }

  const Segments& reads() const override { return request_.input; }
  const Segments& writes() const override { return request_.output; }
  Stamp messageStamp(const MatchKey& key) const override;
  bool needsStage() const override;
  bool tryStart() override;
  bool advance() override;
  bool advanceAtLeisure() override;
  void withdraw() override;
  bool awaitsSpace() const override;
  bool hearsAll() const override;
  std::uint64_t stampHash() const override { return stampHash_; }
  bool usesTransport() const override;
  bool ended() const override { return started_ && roundsDone_ == roundCount_; }
  std::set<int> waitsFor() const override;
  std::string outstanding() const override;
  std::string describe() const override;
  void describe(CallRecord& record) const override;
  void release() override;
  bool hasNews() const override;

 private:
  struct Round;
  struct LocalQueue;
  struct RoundPool;
  struct Outstanding {
    std::set<int> from, to;
  };
  Outstanding transfersUnderWay() const;
  static void transferDone(void* self, std::uint32_t tag, Outcome outcome);

  void planRounds();
  const LocalProgram& localProgram() const;
  void startRound(std::uint32_t number);
  bool mayStartInOrder() const;
  void startInOrder();
  bool doAtOnce(Round& round, std::uint32_t index);
  void issue(Round& round, std::uint32_t index);
  void transfer(Round& round, std::uint32_t index, int peer, bool sends);
  void finishOp(Round& round, std::uint32_t index);
  bool localWork(Round& round, LocalQueue& queue);
  bool wholeStep(Round& round, std::uint32_t index, const Step& step);
  bool localSlice(Round& round, LocalQueue& queue, const Step& step);
  MatchKey keyOf(std::uint32_t transfer, int source) const;
  // collective_mapped.cc
  struct Located;
  struct RingUse;
  void issueMapped(Round& round, std::uint32_t index);
  bool advanceMapped(Round& round);
  bool publish(Round& round, std::uint32_t index);
  void afterPublishing(Round& round, std::uint32_t index);
  std::uint64_t readersOf(const Round& round, const LocalOp& of) const;
  bool mayUseRing(Round& round, std::uint32_t index) const;
  enum class Published : std::uint8_t;
  void writeToBoard(const std::vector<Buffer>& from, std::uint64_t bytes, std::byte* to);
  Published writePublication(Round& round, Publication& line, std::uint32_t index);
  void letReadersMark(Publication& line);
  void awaitPublication(Round& round, std::uint32_t index);
  bool look(Round& round, std::uint32_t index);
  void take(Round& round, std::uint32_t index);
  bool fetch(Round& round, std::uint32_t index);
  bool readAt(const Located& at, std::uint64_t offset, void* to, std::uint64_t bytes);
  void doneWith(Round& round, std::uint32_t index);
  void failMapped(Round& round, std::uint32_t index, Outcome outcome);
  void letGoOfInputs(Round& round, const Step& step);
  const std::byte* mappedOperand(Round& round, std::uint32_t recv, std::uint64_t offset,
                                 std::uint64_t bytes, std::size_t input, std::size_t inputs);
  std::uint64_t number() const { return static_cast<std::uint64_t>(sequence()) + 1; }
  // For the trace, where there is one.
  void mark(Round& round, std::uint32_t index) const;
  void trace(const Round& round, std::uint32_t index) const;
  // Until the next call of it.
  const std::vector<Buffer>& buffersOf(const Round& round, std::uint32_t index) const;
  Buffer onePlace(const Round& round, const Binding::Place& place) const;
  std::byte* addressOf(const Round& round, const Binding::Place& place) const;
  Buffer place(const Round& round, const Ref& ref, const Piece& piece, std::uint64_t element,
               std::uint64_t elements) const;

  OperationRequest request_;
  std::size_t elementBytes_, accumulatorBytes_;
  std::uint64_t stampHash_ = 0;
  std::uint32_t roundCount_ = 1, nextRound_ = 0, roundsDone_ = 0;
  std::uint64_t stageOffset_ = 0, stageBytes_ = 0, roundStage_ = 0;
  std::vector<std::unique_ptr<Round>> rounds_;  // those under way
  std::unique_ptr<Round> lastRound_;            // of a call that may be made again
  std::byte nothing_{};                         // stands for a message of no elements
};

}  // namespace byway
