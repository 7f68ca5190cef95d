// SPDX-License-Identifier: BSD-3-Clause
// What a channel tells the flight recorder and the trace.
#include <fmt/format.h>

#include "byway/base/log.h"
#include "byway/executor/channel.h"

namespace byway {

void Channel::recordCreated(Operation& operation, Seconds now) {
  operation.setRecord(recorder_.count());
  CallRecord* const record = recorder_.add();
  if (record == nullptr) return;
  record->sequence = operation.sequence();
  record->created = now;
  operation.describe(*record);
}

// What was not known at the call is now.
void Channel::recordSupplied(const Operation& operation) {
  CallRecord* const record = recorder_.find(operation.record());
  if (record != nullptr) operation.describe(*record);
}

void Channel::recordStarted(const Operation& operation) {
  CallRecord* const record = recorder_.find(operation.record());
  if (record == nullptr) return;
  record->state = CallState::UnderWay;
  record->started = now();
}

void Channel::recordEnded(const Operation& operation) {
  CallRecord* const record = recorder_.find(operation.record());
  if (record == nullptr) return;
  record->ended = trace_ ? transport_.clock().now() : now();
  record->state = CallState::Completed;
  if (const auto& failure = operation.failure()) {
    record->state = CallState::Failed;
    record->code = failure->code();
    record->error = failure->what();
  }
  if (trace_) trace_->add(*record, operation.describe());
}

std::string Channel::recordedCalls() const {
  return recorder_.toJson(id(), rank(), ranks(), transport_.clock().now());
}

void Channel::writeRecordsOnce() {
  if (recordsWritten_ || options_.recorderFolder.empty() || recorder_.count() == 0) return;
  recordsWritten_ = true;
  const std::string path =
      fmt::format("{}/byway-calls-{:016x}-rank-{}.json", options_.recorderFolder, id(), rank());
  try {
    writeRecords(path, recordedCalls());
    log(LogLevel::Info, fmt::format("byway: the last calls are in {}", path));
  } catch (const Error& error) {
    log(LogLevel::Warning, fmt::format("byway: {}", error.what()));
  }
}

}  // namespace byway
