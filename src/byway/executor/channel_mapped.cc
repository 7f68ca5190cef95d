// SPDX-License-Identifier: BSD-3-Clause
// A channel's board: who is done, who sleeps, and calls that differ (docs/host.md).
#include <algorithm>
#include <atomic>

#include "byway/base/fence.h"
#include "byway/executor/channel.h"

namespace byway {

std::byte* Channel::scratch(std::size_t count) {
  const std::size_t bytes = count * kScratchStride;
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  return scratch_.data();
}

// Calls are numbered from 1 on the board, so the first that is not over has the number of those
// that are. A caller that makes call after call says so once for several: it leaves the others room
// for more.
void Channel::updateDone(bool isCalled) {
  if (isCalled && nextSequence_ % kCallsADone != 0) return;
  std::uint64_t ended = nextSequence_;
  for (const auto& operation : operations_) {
    if (operation->sequence() == Operation::kUnnumbered) continue;
    ended = static_cast<std::uint64_t>(operation->sequence());
    break;
  }
  board()->setEnded(ended);
  // To see how far the others are costs a cache line each.
  const std::size_t mayWait = isCalled ? kCallsADone : 0;
  while (unchecked_.size() > mayWait && board()->haveEnded(unchecked_.front().sequence + 1)) {
    if (!broken_ && !pending_) compare(unchecked_.front());
    unchecked_.pop_front();
  }
  const std::uint64_t done =
      unchecked_.empty() ? ended : std::min(ended, unchecked_.front().sequence);
  broughtSpace_ = board()->setDone(done) || broughtSpace_;
}

// What was written before is seen by a rank that says afterwards that it sleeps, and looks again.
void Channel::wakeSleepers() {
  if (!broughtData_ && !broughtSpace_) return;
  threadFence(std::memory_order_seq_cst);
  for (int r = 0; r < ranks(); ++r) {
    if (r == rank()) continue;
    const Board::Sleep sleep = board()->sleepOf(r);
    if (sleep == Board::Sleep::No) continue;
    if (!broughtData_ && sleep != Board::Sleep::ForSpace) continue;
    if (!board()->endSleepOf(r)) continue;
    transport_.control(peer(r),
                       encode({ControlKind::Wake, id(), rank(), ErrorCode::Internal, -1, 0, {}}));
  }
  broughtData_ = broughtSpace_ = false;
}

bool Channel::prepareSleep(bool onBoard) {
  if (board() == nullptr || operations_.empty()) return true;
  const bool forSpace = std::any_of(operations_.begin(), operations_.end(),
                                    [](const auto& one) { return one->awaitsSpace(); });
  board()->setSleep(forSpace ? Board::Sleep::ForSpace : Board::Sleep::ForData, !onBoard);
  threadFence(std::memory_order_seq_cst);
  compareCalls();
  if (!advance()) return true;
  endSleep();
  return false;
}

bool Channel::usesBoardAlone() const {
  return board() != nullptr && !broken_ && !inquiry_ && !operations_.empty() &&
         std::none_of(operations_.begin(), operations_.end(),
                      [](const auto& one) { return one->usesTransport(); });
}

void Channel::endSleep() {
  if (board() != nullptr) board()->setSleep(Board::Sleep::No);
}

// A rank whose call differs may neither read what this one publishes nor send it a message.
void Channel::compareCalls() {
  if (broken_ || pending_) return;
  for (const Unchecked& call : unchecked_) {
    if (!compare(call)) return;
  }
  for (const auto& operation : operations_) {
    if (operation->sequence() == Operation::kUnnumbered || !operation->comparable()) continue;
    const Stamp& stamp = operation->stamp();
    const auto sequence = static_cast<std::uint64_t>(operation->sequence());
    if (!compare({sequence, stamp, operation->stampHash()})) return;
  }
}

bool Channel::compare(const Unchecked& call) {
  const std::uint64_t sequence = call.sequence;
  for (int r = 0; r < ranks(); ++r) {
    if (r == rank()) continue;
    const Publication& first = board()->publication(r, sequence + 1, 0);
    if (first.number.load(std::memory_order_acquire) != sequence + 1) continue;
    if (first.stampHash.load(std::memory_order_relaxed) == call.stampHash) continue;
    const Stamp theirs = first.stamp();
    if (sameCall(call.stamp, theirs)) continue;
    mismatch(sequence, call.stamp, {id(), sequence, 0, static_cast<std::uint32_t>(r)}, theirs);
    return false;
  }
  return true;
}

}  // namespace byway
