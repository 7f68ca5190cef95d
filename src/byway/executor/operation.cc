// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/operation.h"

#include <utility>

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

void Operation::fail(const Error& error) {
  if (failure_ || done()) return;
  failure_ = Error(error.code(), error.what(), channel_.rank(),
                   error.sequence() >= 0 ? error.sequence() : sequence_);
}

void Operation::complete() {
  if (done()) return;
  if (failure_) error_ = std::make_exception_ptr(*failure_);
  done_.store(true, std::memory_order_release);
}

void Operation::release() { keepAlive_.reset(); }

}  // namespace byway
