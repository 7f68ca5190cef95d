// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/channel.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "byway/base/fence.h"
#include "byway/executor/control.h"

namespace byway {
namespace {

// How long a failed call may wait for the transport to let go of its buffers.
constexpr Seconds kDrainSeconds = 1.0;
// How long another rank's reason may take after it gave up a transfer.
constexpr Seconds kReasonSeconds = 0.2;

}  // namespace

Channel::Channel(Transport& transport, ChannelOptions options)
    : transport_(transport),
      options_(std::move(options)),
      stage_(options_.stageQuota),
      messages_(*this),
      recorder_(options_.recordedCalls) {
  if (!options_.trace.folder.empty()) {
    trace_ = std::make_unique<TraceLog>(options_.trace, id(), rank(), ranks());
  }
  // What came before this side was ready.
  transport_.forEachUnexpected(id(), [this](const MatchKey& key, const Stamp& stamp) {
    if (isPointToPoint(key)) messages_.arrived(key, stamp);
  });
}

void Channel::checkUsable() const {
  if (!broken_) return;
  throw Error(ErrorCode::Broken,
              fmt::format("the communicator is broken and stays so; it failed with {}: {}",
                          toString(broken_->code()), broken_->what()),
              rank(), broken_->sequence());
}

std::shared_ptr<CollectiveOperation> Channel::submit(OperationRequest&& request) {
  checkUsable();
  const Seconds now = this->now();
  const Seconds deadline = now + request.timeout;
  auto operation =
      std::make_shared<CollectiveOperation>(*this, std::move(request), nextSequence_, deadline);
  begin(operation, now);
  return operation;
}

const std::shared_ptr<CollectiveOperation>& Channel::submit(RepeatedCall& call, CallData&& data) {
  checkUsable();
  const Seconds now = this->now();
  const Seconds deadline = now + data.timeout;
  if (call.last && call.last.use_count() == 1 && call.last->mayGoAgain()) {
    // What the last holder but this one did with it is over.
    threadFence(std::memory_order_acquire);
    call.last->goAgain(std::move(data), nextSequence_, deadline);
  } else {
    OperationRequest request = call.request;
    request.take(std::move(data));
    call.last =
        std::make_shared<CollectiveOperation>(*this, std::move(request), nextSequence_, deadline);
  }
  begin(call.last, now);
  return call.last;
}

void Channel::begin(const std::shared_ptr<CollectiveOperation>& operation, Seconds now) {
  recordCreated(*operation, now);
  const std::uint64_t sequence = nextSequence_++;
  if (operation->supplied()) announce(*operation);
  if (isQuiet() && operation->supplied() && endsAtOnce(operation)) return;
  add(operation);
  if (!left_.empty()) checkDepartures();
  if (!refusedThere_.empty()) checkRefusal(sequence);
  advance(true);
}

// No other call is under way, and nothing is known that could concern the next one.
bool Channel::isQuiet() const {
  return operations_.empty() && lingering_.empty() && left_.empty() && refusedThere_.empty() &&
         !broken_ && !pending_;
}

// What advance() would do with a call that is the only one, where it needs nobody's leave and all
// it needs is there: most calls of a few bytes. False: it is left as it is, to be advanced.
bool Channel::endsAtOnce(const std::shared_ptr<CollectiveOperation>& operation) {
  beginning_ = operation.get();
  const bool hasStarted = guarded(*operation, [&] { return operation->tryStart(); }) && !pending_;
  if (hasStarted) {
    recordStarted(*operation);
    if (!operation->ended()) guarded(*operation, [&] { return operation->advance(); });
  }
  beginning_ = nullptr;
  if (!hasStarted || pending_ || !operation->ended()) return false;
  end(operation);
  if (board() != nullptr) {
    updateDone(true);
    wakeSleepers();
  }
  return true;
}

// From now on the messages of the call can be compared with it; some may have come before.
void Channel::announce(const CollectiveOperation& operation) {
  const auto sequence = static_cast<std::uint64_t>(operation.sequence());
  history_[sequence % kRemembered] = operation.stamp();
  transport_.forEachUnexpected(
      id(), sequence, [this](const MatchKey& key, const Stamp& stamp) { dataArrived(key, stamp); });
}

void Channel::supply(CollectiveOperation& operation, OperationRequest&& request) {
  if (operation.done() || operation.failed()) return;
  guarded(operation, [&] {
    operation.supply(std::move(request));
    recordSupplied(operation);
    announce(operation);
    return true;
  });
  advance();
}

std::shared_ptr<Operation> Channel::submit(PointToPointRequest&& request) {
  checkUsable();
  const Seconds now = this->now();
  const Seconds deadline = now + request.timeout;
  auto operation = std::make_shared<PointToPointOperation>(*this, std::move(request), deadline);
  recordCreated(*operation, now);
  add(operation);
  advance(true);
  if (!left_.empty()) {
    checkDepartures();
    advance();
  }
  return operation;
}

void Channel::add(const std::shared_ptr<Operation>& operation) {
  operation->setLateAt(now() + options_.lateAfter);
  operations_.push_back(operation);
}

// Null for one that is over.
const Operation* Channel::find(std::int64_t sequence) const {
  if (beginning_ != nullptr && beginning_->sequence() == sequence) return beginning_;
  const auto it = std::find_if(operations_.begin(), operations_.end(), [&](const auto& operation) {
    return operation->sequence() == sequence;
  });
  return it == operations_.end() ? nullptr : it->get();
}

bool Channel::dataArrived(const MatchKey& key, const Stamp& stamp) {
  const bool failing = broken_ || pending_;
  if (isPointToPoint(key)) {
    if (failing) return true;
    messages_.arrived(key, stamp);
    if (!left_.empty()) checkDepartures();
    return true;
  }
  if (key.sequence >= nextSequence_) return true;
  const Operation* const call = find(static_cast<std::int64_t>(key.sequence));
  if (refusedHere_.count(key.sequence) != 0) return true;
  const bool over = call == nullptr;
  if (!over && !call->comparable()) return true;
  if (over && nextSequence_ - key.sequence > kRemembered) return true;
  const Stamp mine = over ? history_[key.sequence % kRemembered] : call->messageStamp(key);
  if (over ? sameCall(mine, stamp) : mine == stamp) return true;
  if (!failing) mismatch(key.sequence, mine, key, stamp);
  return false;
}

void Channel::mismatch(std::uint64_t sequence, const Stamp& mine, const MatchKey& key,
                       const Stamp& theirs) {
  pending_ =
      Error(ErrorCode::Mismatch,
            fmt::format("ranks called different things as call {}: rank {} called {}; rank {} "
                        "called {}. Different: {}",
                        sequence, rank(), describe(mine), key.source, describe(theirs),
                        difference(mine, rank(), theirs, static_cast<int>(key.source))),
            rank(), static_cast<std::int64_t>(sequence));
}

void Channel::found(const Error& error) { takeFailure(error, false); }

void Channel::reported(const Error& error) { takeFailure(error, true); }

// The first is the reason for good, unless one of an earlier call comes before it has broken
// anything. One that comes later still ends the calls from its own on: they would wait in vain.
void Channel::takeFailure(const Error& error, bool isReport) {
  const auto isBefore = [&](std::int64_t sequence) {
    return error.sequence() >= 0 && error.sequence() < sequence;
  };
  if (broken_ && !isBefore(brokenFrom_)) return;
  if (pending_ && !isBefore(pending_->sequence())) return;
  pending_ = error;
  pendingIsReport_ = isReport;
}

void Channel::transferFailed(const Operation& operation, bool sends, int other, Outcome outcome) {
  const std::string what = fmt::format("{} on rank {}: ", operation.name(), rank());
  switch (outcome) {
    case Outcome::Ok:
      return;
    case Outcome::PeerLost:
      return found(Error(
          ErrorCode::PeerLost,
          what + fmt::format("rank {} is gone (its process ended or cannot be reached)", other),
          rank(), operation.sequence()));
    case Outcome::WrongSize:
      return found(Error(ErrorCode::Mismatch,
                         what + fmt::format("a message {} rank {} has another size than this rank "
                                            "expects; make both sides pass the same counts",
                                            sends ? "to" : "from", other),
                         rank(), operation.sequence()));
    case Outcome::Cancelled:
      if (broken_) {  // that is the reason
        return found(Error(broken_->code(), broken_->what(), rank(), operation.sequence()));
      }
      if (givenUp_) return;
      givenUp_ = Error(
          ErrorCode::PeerLost,
          what + fmt::format("rank {} gave up the transfer {} it", other, sends ? "to" : "from"),
          rank(), operation.sequence());
      givenUpUntil_ = transport_.clock().now() + kReasonSeconds;
      return;
  }
}

// A mistake that all ranks make harms nothing; one that only some make leaves the others with a
// call that cannot complete.
void Channel::refuse(const Error& error) {
  if (broken_) return;
  const std::uint64_t sequence = nextSequence_++;
  refusedHere_.insert(sequence);
  if (refusedHere_.size() > kRemembered) refusedHere_.erase(refusedHere_.begin());
  refusedThere_.erase(sequence);
  const auto bytes = encode({ControlKind::Refused, id(), rank(), error.code(),
                             static_cast<std::int64_t>(sequence), 0, error.what()});
  tellOthers(bytes);
}

void Channel::refused(int from, std::uint64_t sequence, const std::string& why) {
  if (broken_ || pending_ || refusedHere_.count(sequence) != 0) return;
  if (refusedThere_.size() < kRemembered) {
    refusedThere_.try_emplace(sequence, fmt::format("rank {} refused it: {}", from, why));
  }
  if (sequence < nextSequence_) checkRefusal(sequence);
}

void Channel::checkRefusal(std::uint64_t sequence) {
  const auto it = refusedThere_.find(sequence);
  if (it == refusedThere_.end() || broken_ || pending_) return;
  pending_ =
      Error(ErrorCode::Mismatch, fmt::format("call {} cannot complete: {}", sequence, it->second),
            rank(), static_cast<std::int64_t>(sequence));
}

void Channel::peerLost(PeerId lost) {
  for (int r = 0; r < ranks(); ++r) {
    if (r == rank() || peer(r) != lost || left_.count(r) != 0) continue;
    // Calls under way may have all they need; those that do not are failed by their transfers.
    found(Error(ErrorCode::PeerLost,
                fmt::format("rank {} is gone (its process ended or cannot be reached)", r), rank(),
                static_cast<std::int64_t>(nextSequence_)));
  }
}

void Channel::tellOthers(std::span<const std::byte> message) {
  for (int r = 0; r < ranks(); ++r) {
    if (r != rank()) transport_.control(peer(r), message);
  }
}

void Channel::goodbye(int from, std::uint64_t calls, std::uint64_t messages) {
  if (from < 0 || from >= ranks()) return;
  left_[from] = {calls, messages};
  checkDepartures();
}

void Channel::sayGoodbye() {
  for (int r = 0; r < ranks(); ++r) {
    if (r == rank()) continue;
    transport_.control(peer(r), encode({ControlKind::Goodbye,
                                        id(),
                                        rank(),
                                        ErrorCode::Aborted,
                                        static_cast<std::int64_t>(calls()),
                                        messages_.sentTo(r),
                                        {}}));
  }
}

// All others have left, and what they and this rank sent here has come.
bool Channel::nobodyIsLeft() const {
  if (ranks() < 2 || left_.size() + 1 < options_.peers.size()) return false;
  if (messages_.acceptedFrom(rank()) < messages_.sentTo(rank())) return false;
  return std::all_of(left_.begin(), left_.end(), [&](const auto& one) {
    return messages_.acceptedFrom(one.first) >= one.second.messages;
  });
}

void Channel::checkDepartures() {
  if (broken_ || pending_) return;
  // A failure ends all point-to-point calls, so what has come is received first.
  const bool receiving = std::any_of(operations_.begin(), operations_.end(),
                                     [](const auto& one) { return one->receives(); });
  if (!receiving && nobodyIsLeft()) {
    for (const auto& operation : operations_) {
      if (!operation->awaitsAnybody() || operation->failed()) continue;
      return found(Error(ErrorCode::PeerLost,
                         operation->name() + " cannot complete: all other ranks destroyed their "
                                             "communicators, and no message of theirs is left",
                         rank(), operation->sequence()));
    }
  }
  for (const auto& [r, departure] : left_) {
    const std::uint64_t calls = departure.calls;
    const bool allCame = !receiving && messages_.acceptedFrom(r) >= departure.messages;
    for (const auto& operation : operations_) {
      const bool missed = operation->sequence() == Operation::kUnnumbered
                              ? allCame && operation->awaitsMessageOf(r)
                              : static_cast<std::uint64_t>(operation->sequence()) >= calls;
      if (!missed || operation->failed()) continue;
      return found(
          Error(ErrorCode::PeerLost,
                fmt::format("{} cannot complete: rank {} destroyed its communicator after {} "
                            "calls",
                            operation->name(), r, calls),
                rank(), operation->sequence()));
    }
  }
}

void Channel::breakWith(const Error& error, bool tell) {
  if (broken_) return;
  broken_ = error;
  brokenAt_ = transport_.clock().now();
  // A failure of a later call, that another rank reported, say: the calls before it that this rank
  // has not made it never will, and the others must not wait for them.
  const auto next = static_cast<std::int64_t>(nextSequence_);
  const bool isLater = error.sequence() > next;
  failFrom(isLater ? Error(error.code(), error.what(), rank(), next) : error, tell || isLater);
  // A call that waited to learn why a transfer was given up has learnt it.
  if (givenUp_) found(Error(error.code(), error.what(), rank(), givenUp_->sequence()));
  cancelled_ = false;
  cancelWhenMay();
}

// Calls before the one that failed may have all they need, and are given the time to end well.
void Channel::failFrom(const Error& error, bool tell) {
  brokenFrom_ = error.sequence();
  for (const auto& operation : operations_) {
    const bool numbered = operation->sequence() != Operation::kUnnumbered;
    if (!numbered || operation->sequence() >= error.sequence()) operation->fail(error);
  }
  if (tell) {
    const ControlMessage message{ControlKind::Broken, id(), rank(),      error.code(),
                                 error.sequence(),    0,    error.what()};
    const auto bytes = encode(message);
    tellOthers(bytes);
  }
}

void Channel::cancelWhenMay() {
  if (cancelled_) return;
  const Seconds now = transport_.clock().now();
  const bool late = now >= brokenAt_ + kDrainSeconds;
  const bool waits =
      std::any_of(operations_.begin(), operations_.end(), [now](const auto& operation) {
        return !operation->failed() && !operation->finished() && operation->deadline() > now;
      });
  if (waits && !late) return;
  cancelled_ = true;
  for (const auto& operation : operations_) {
    if (!operation->finished()) operation->fail(*broken_);
  }
  transport_.cancel(id());
}

Seconds Channel::nextDeadline() const {
  if (broken_) {
    if (idle()) return kNever;
    Seconds drained = brokenAt_ + kDrainSeconds;
    if (cancelled_) return drained;
    for (const auto& operation : operations_) {
      if (!operation->failed()) drained = std::min(drained, operation->deadline());
    }
    return drained;
  }
  Seconds next = givenUpUntil_;
  if (inquiry_) next = std::min(next, inquiry_->missing > 0 ? inquiry_->until : 0);
  if (inquiry_ && !inquiry_->isLate) return next;
  for (const auto& operation : operations_) {
    next = std::min(next, operation->deadline());
    if (!inquiry_) next = std::min(next, operation->lateAt());
  }
  return next;
}

void Channel::checkDeadlines(Seconds now) {
  if (broken_) return;
  if (now >= givenUpUntil_) {
    givenUpUntil_ = kNever;
    found(*givenUp_);
  }
  if (inquiry_ && (now >= inquiry_->until || inquiry_->missing == 0)) conclude();
  if (broken_ || (inquiry_ && !inquiry_->isLate)) return;
  for (const auto& operation : operations_) {
    if (operation->finished()) continue;
    if (operation->deadline() <= now) return ask(operation, false, now);
    if (operation->lateAt() <= now && !inquiry_) ask(operation, true, now);
  }
}

// What a state machine throws (no memory, a fault of ours) fails its call, on whichever thread.
template <typename Fn>
bool Channel::guarded(const Operation& operation, const Fn& fn) {
  try {
    return fn();
  } catch (const Error& error) {
    found(
        Error(error.code(), operation.name() + ": " + error.what(), rank(), operation.sequence()));
  } catch (const std::exception& error) {
    found(Error(ErrorCode::Internal, operation.name() + ": " + error.what(), rank(),
                operation.sequence()));
  }
  return true;
}

// In call order; a call that waits for stage memory keeps later ones from taking it.
void Channel::startWhatMay() {
  bool stageIsWaitedFor = false;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    Operation& operation = *operations_[i];
    if (operation.started() || operation.failed()) continue;
    const bool follows =
        std::any_of(operations_.begin(), operations_.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const auto& earlier) { return operation.mustFollow(*earlier); });
    if (follows || (stageIsWaitedFor && operation.needsStage()) ||
        !guarded(operation, [&] { return operation.tryStart(); })) {
      stageIsWaitedFor = stageIsWaitedFor || operation.needsStage();
    } else {
      recordStarted(operation);
    }
  }
}

// isCalled: by a caller that is about to go on, for which nothing is done that may wait.
bool Channel::advance(bool isCalled) {
  bool did = false;
  if (const auto failure = std::exchange(pending_, std::nullopt)) {
    if (broken_)
      failFrom(*failure, !pendingIsReport_);
    else
      breakWith(*failure, !pendingIsReport_);
    did = true;
  }
  if (!broken_) startWhatMay();
  for (const auto& operation : operations_) {
    did = guarded(*operation, [&] { return operation->advance(); }) || did;
  }
  if (broken_) cancelWhenMay();
  did = retire() || did;
  if (board() != nullptr) {
    updateDone(isCalled);
    wakeSleepers();
  }
  return did;
}

bool Channel::hasNews() const {
  return pending_ || std::any_of(operations_.begin(), operations_.end(),
                                 [](const auto& operation) { return operation->hasNews(); });
}

bool Channel::advanceAtLeisure() {
  return std::any_of(operations_.begin(), operations_.end(), [&](const auto& operation) {
    return guarded(*operation, [&] { return operation->advanceAtLeisure(); });
  });
}

// Of a call that is over, or failed so long ago that it is not waited for any more.
void Channel::end(const std::shared_ptr<Operation>& entry) {
  Operation& operation = *entry;
  if (operation.failed())
    operation.withdraw();
  else if (board() != nullptr && !operation.hearsAll())
    unchecked_.push_back({static_cast<std::uint64_t>(operation.sequence()), operation.stamp(),
                          operation.stampHash()});
  if (operation.finished())
    operation.release();
  else
    lingering_.push_back(entry);
  operation.complete();
  recordEnded(operation);
  if (!operation.hasCallbacks()) return;
  for (auto& callback : operation.takeCallbacks()) callbacks_.push_back(std::move(callback));
}

bool Channel::retire() {
  const bool late = broken_ && transport_.clock().now() >= brokenAt_ + kDrainSeconds;
  std::size_t kept = 0;
  for (auto& entry : operations_) {
    if (entry->finished() || (entry->failed() && late))
      end(entry);
    else if (&operations_[kept++] != &entry)
      std::swap(operations_[kept - 1], entry);
  }
  const bool any = kept < operations_.size();
  if (!any && !broken_ && lingering_.empty()) return false;
  operations_.erase(operations_.begin() + static_cast<std::ptrdiff_t>(kept), operations_.end());
  std::erase_if(lingering_, [](const auto& operation) {
    if (!operation->finished()) return false;
    operation->release();
    return true;
  });
  if (any && !left_.empty()) checkDepartures();
  if (broken_ && operations_.empty()) writeRecordsOnce();
  return any;
}

std::vector<std::function<void()>> Channel::takeCallbacks() {
  return std::exchange(callbacks_, {});
}

}  // namespace byway
