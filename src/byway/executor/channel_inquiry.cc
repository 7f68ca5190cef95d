// SPDX-License-Identifier: BSD-3-Clause
// How a channel finds out who holds a call up. At a call's deadline, and once when it is late, it
// asks all ranks where they stand; they answer from whichever thread drives their engine, so an
// answer says nothing of what their callers do.
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "byway/base/log.h"
#include "byway/executor/channel.h"

namespace byway {
namespace {

constexpr Seconds kAnswerSeconds = 0.5;

}  // namespace

void Channel::ask(const std::shared_ptr<Operation>& operation, bool isLate, Seconds now) {
  if (isLate) operation->setLateAt(kNever);
  inquiry_ = Inquiry{operation, isLate, now + kAnswerSeconds, ++inquiries_, {}, ranks() - 1};
  inquiry_->standings.resize(static_cast<std::size_t>(ranks()));
  const ControlMessage question{
      ControlKind::Ask, id(), rank(), ErrorCode::Timeout, operation->sequence(),
      inquiry_->number, {}};
  tellOthers(encode(question));
}

// A call that has not started waits for what the calls before it wait for.
std::vector<int> Channel::waitsOf(const Operation& operation) const {
  std::set<int> waits;
  for (const auto& other : operations_) {
    if (other->finished()) continue;
    if (other.get() == &operation || !operation.started()) waits.merge(other->waitsFor());
    if (other.get() == &operation) break;
  }
  waits.erase(rank());
  return {waits.begin(), waits.end()};
}

RankStanding Channel::standing(std::int64_t sequence) const {
  RankStanding out{Standing::Waiting, nextSequence_, {}};
  const auto at = std::find_if(operations_.begin(), operations_.end(), [&](const auto& operation) {
    return sequence != Operation::kUnnumbered && operation->sequence() == sequence;
  });
  if (at != operations_.end()) {
    out.waitsFor = waitsOf(**at);
    return out;
  }
  if (sequence != Operation::kUnnumbered && static_cast<std::uint64_t>(sequence) < nextSequence_) {
    out.standing = Standing::Complete;
    return out;
  }
  // Not in it yet, maybe because other calls hold it up: then those that they wait for are asked.
  std::set<int> waits;
  for (const auto& operation : operations_) waits.merge(operation->waitsFor());
  waits.erase(rank());
  out.waitsFor.assign(waits.begin(), waits.end());
  if (waits.empty()) out.standing = Standing::NotEntered;
  return out;
}

void Channel::asked(const ControlMessage& question) {
  const ControlMessage answer{ControlKind::Answer,
                              id(),
                              rank(),
                              ErrorCode::Timeout,
                              question.sequence,
                              question.messages,
                              encode(standing(question.sequence))};
  transport_.control(peer(question.source), encode(answer));
}

void Channel::answered(const ControlMessage& answer) {
  if (!inquiry_ || inquiry_->number != answer.messages) return;
  RankStanding& known = inquiry_->standings[static_cast<std::size_t>(answer.source)];
  const auto said = decodeStanding(answer.text, ranks());
  if (!said || known.standing != Standing::Silent) return;
  known = *said;
  --inquiry_->missing;
}

void Channel::conclude() {
  Inquiry inquiry = *std::exchange(inquiry_, std::nullopt);
  const Operation& operation = *inquiry.operation;
  if (operation.finished() || operation.failed()) return;
  inquiry.standings[static_cast<std::size_t>(rank())] = {Standing::Waiting, nextSequence_,
                                                         waitsOf(operation)};
  const bool isCollective = operation.sequence() != Operation::kUnnumbered;
  const Culprits culprits = findCulprits(inquiry.standings, rank(), isCollective);
  const std::string seen = fmt::format("on rank {}: {}", rank(), operation.outstanding());
  if (inquiry.isLate) {
    log(LogLevel::Warning,
        fmt::format("byway: {} has been under way for {:g} s: {}. Outstanding {}", operation.name(),
                    options_.lateAfter, culprits.text, seen));
    return;
  }
  breakWith(Error(ErrorCode::Timeout,
                  fmt::format("{} did not complete in time: {}. Outstanding {}", operation.name(),
                              culprits.text, seen),
                  rank(), operation.sequence()),
            true);
}

}  // namespace byway
