// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/operation.h"

#include <utility>

#include <fmt/format.h>

#include "byway/executor/channel.h"

namespace byway {

Operation::Operation(Channel& channel, std::int64_t sequence, const Stamp& stamp, Seconds deadline,
                     std::shared_ptr<void> keepAlive)
    : channel_(channel),
      sequence_(sequence),
      stamp_(stamp),
      deadline_(deadline),
      keepAlive_(std::move(keepAlive)) {}

Operation::~Operation() = default;

bool Operation::mustFollow(const Operation& earlier) const {
  return writes().overlaps(earlier.writes()) || writes().overlaps(earlier.reads()) ||
         reads().overlaps(earlier.writes());
}

std::string Operation::name() const {
  if (sequence_ == kUnnumbered) return describe();
  return fmt::format("call {} ({})", sequence_, describe());
}

void Operation::fail(const Error& error) {
  if (failure_ || done() || ended()) return;
  // The call that failed first, unless that is a later one, or none.
  const std::int64_t first = error.sequence();
  const bool isOwn = sequence_ != kUnnumbered && (first < 0 || first > sequence_);
  failure_ = Error(error.code(), error.what(), channel_.rank(), isOwn ? sequence_ : first);
}

void Operation::complete() {
  if (done()) return;
  if (failure_) error_ = std::make_exception_ptr(*failure_);
  done_.store(true, std::memory_order_release);
}

void Operation::release() { keepAlive_.reset(); }

void Operation::renew(std::int64_t sequence, Seconds deadline, std::shared_ptr<void> keepAlive) {
  BYWAY_ASSERT(done() && !failed() && inFlight_ == 0 && callbacks_.empty());
  sequence_ = sequence;
  deadline_ = deadline;
  lateAt_ = kNever;
  keepAlive_ = std::move(keepAlive);
  started_ = false;
  done_.store(false, std::memory_order_relaxed);
}

}  // namespace byway
