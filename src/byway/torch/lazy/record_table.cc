// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/lazy/record_table.h"

#include <c10/util/Exception.h>

#include <utility>

#include <torch/csrc/lazy/core/config.h>

namespace byway::pytorch::lazy {
namespace {

thread_local int replays = 0;

std::string textOf(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& e) {
    return e.what_without_backtrace();
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown error";
  }
}

}  // namespace

ReplayScope::ReplayScope() { ++replays; }
ReplayScope::~ReplayScope() { --replays; }
bool ReplayScope::active() { return replays > 0; }

bool Record::isUnderWay() const {
  return hasRun_ && !finished_ && result_.work && !result_.work->isCompleted();
}

void Record::run(Tensors inputs) {
  if (error_) std::rethrow_exception(error_);
  if (hasRun_) return;
  const ReplayScope replaying;
  hasRun_ = true;
  try {
    result_ = call_.make(std::move(inputs));
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
  if (!startsOnly_) finish();
}

void Record::finish() {
  if (error_) std::rethrow_exception(error_);
  if (finished_) return;
  const ReplayScope replaying;
  try {
    if (result_.work) result_.work->wait();
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
  result_.work.reset();
  finished_ = true;
}

// Never destroyed: nodes of the lazy graph may outlive this file's statics.
RecordTable& RecordTable::instance() {
  static auto* const table = new RecordTable();
  return *table;
}

std::shared_ptr<Record> RecordTable::add(RecordedCall call, bool startsOnly) {
  call.dropTensors();
  const std::scoped_lock lock(mutex_);
  const std::int64_t sequence = next_++;
  auto record = std::make_shared<Record>(sequence, std::move(call), startsOnly);
  records_.emplace(sequence, record);
  ++pending_;
  return record;
}

std::shared_ptr<Record> RecordTable::running(std::int64_t sequence) {
  const std::scoped_lock lock(mutex_);
  dropReleased(sequence);
  const auto found = records_.find(sequence);
  TORCH_CHECK(found != records_.end(), "byway lazy: no record ", sequence,
              "; its step failed, or byway.lazy.reset() dropped it");
  return found->second;
}

bool RecordTable::hasFinished(std::int64_t sequence) {
  const std::scoped_lock lock(mutex_);
  const auto found = records_.find(sequence);
  return found == records_.end() || found->second->hasFinished();
}

void RecordTable::release(std::int64_t sequence) {
  const std::scoped_lock lock(mutex_);
  const auto found = records_.find(sequence);
  if (found == records_.end()) return;
  // Without the thread pool the nodes outlive the run of their graph.
  if (!FLAGS_torch_lazy_use_thread_pool && !found->second->isUnderWay()) {
    if (!found->second->hasRun()) --pending_;
    records_.erase(found);
    return;
  }
  released_.emplace(next_, sequence);
}

void RecordTable::dropReleased(std::int64_t running) {
  const auto end = released_.upper_bound(running);
  for (auto next = released_.begin(); next != end;) {
    const auto found = records_.find(next->second);
    if (found != records_.end() && found->second->isUnderWay()) {
      ++next;
      continue;
    }
    if (found != records_.end()) {
      if (!found->second->hasRun()) --pending_;
      records_.erase(found);
    }
    next = released_.erase(next);
  }
}

void RecordTable::countExecuted(const Record& record) {
  ++executed_;
  --pending_;
  if (!logging_) return;
  const std::scoped_lock lock(mutex_);
  log_.push_back(record.call().name());
}

Statistics RecordTable::statistics() {
  const std::scoped_lock lock(mutex_);
  return {next_ - 1, executed_, replayed_, static_cast<std::int64_t>(records_.size()), pending_};
}

std::vector<std::string> RecordTable::takeLog() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(log_, {});
}

void RecordTable::fail(const Record& record, const std::exception_ptr& error) {
  const std::scoped_lock lock(mutex_);
  if (failed_) return;
  failure_ = error;
  failureText_ = c10::str("byway lazy: ", record.call().name(), ", call ", record.sequence(),
                          " of this process, failed when its step ran; ",
                          "call byway.lazy.reset() to go on without that step: ", textOf(error));
  failed_ = true;
}

std::exception_ptr RecordTable::failure() {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

void RecordTable::checkUsable() {
  if (!failed_) return;
  const std::scoped_lock lock(mutex_);
  C10_THROW_ERROR(DistBackendError, failureText_);
}

void RecordTable::reset() {
  std::map<std::int64_t, std::shared_ptr<Record>> dropped;
  const std::scoped_lock lock(mutex_);
  dropped.swap(records_);
  released_.clear();
  pending_ = 0;
  failure_ = nullptr;
  failureText_.clear();
  failed_ = false;
}

}  // namespace byway::pytorch::lazy
