// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/work.h"

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "byway/base/clock.h"
#include "byway/torch/errors.h"
#include "byway/torch/flight_log.h"
#include "byway/torch/gil.h"

namespace byway::pytorch {
namespace {

Seconds secondsOf(std::chrono::milliseconds timeout) {
  return timeout.count() > 0 ? static_cast<Seconds>(timeout.count()) * 1e-3 : kNever;
}

// The base class makes a record of every call with a title, so titles are given while somebody
// records only.
const char* titleIfRecorded(const char* title) {
  return at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE) ? title : nullptr;
}

std::optional<Tensors> inputsIfRecorded(const Tensors* inputs) {
  if (inputs == nullptr || titleIfRecorded("") == nullptr) return std::nullopt;
  return *inputs;
}

Tensors outputsOf(const std::vector<c10::intrusive_ptr<WorkBase>>& calls) {
  Tensors all;
  for (const auto& call : calls) {
    for (auto& tensor : call->result()) all.push_back(std::move(tensor));
  }
  return all;
}

}  // namespace

void GroupState::note(const Error& error) {
  switch (error.code()) {
    case ErrorCode::InvalidArgument:
    case ErrorCode::Unsupported:
    case ErrorCode::Broken:
      return;  // nothing broke, or it did before
    case ErrorCode::Mismatch:
    case ErrorCode::Timeout:
    case ErrorCode::PeerLost:
    case ErrorCode::Aborted:
    case ErrorCode::Resource:
    case ErrorCode::Internal:
      break;
  }
  if (!failed.exchange(true)) firstFailure = error.code();
}

std::string CallContext::text() const {
  return "byway: " + std::string(operation) + " #" + std::to_string(sequence) +
         (tensors.empty() ? "" : " of " + tensors) + " on rank " + std::to_string(rank) + " of " +
         std::to_string(size) + " (group " + (group.empty() ? "world" : group) + ")";
}

WorkBase::WorkBase(int rank, c10d::OpType type, const char* title, const Tensors* inputs,
                   Tensors outputs)
    : c10d::Work(rank, type, title == nullptr ? nullptr : titleIfRecorded(title),
                 inputsIfRecorded(inputs)),
      outputs_(std::move(outputs)) {}

bool WorkBase::isCompleted() {
  const std::scoped_lock lock(mutex_);
  return completed_;
}

bool WorkBase::isSuccess() const {
  const std::scoped_lock lock(mutex_);
  return completed_ && !exception_;
}

std::exception_ptr WorkBase::exception() const {
  const std::scoped_lock lock(mutex_);
  return exception_;
}

Tensors WorkBase::result() { return outputs_; }

bool WorkBase::wait(std::chrono::milliseconds timeout) {
  const WithoutGil released;
  if (!waitEnd(secondsOf(timeout))) {
    C10_THROW_ERROR(DistBackendError, "byway: not completed within " +
                                          std::to_string(timeout.count()) +
                                          " ms; the call goes on, and wait() may be called again");
  }
  std::exception_ptr error;
  {
    const std::scoped_lock lock(mutex_);
    error = exception_;
  }
  if (error) std::rethrow_exception(error);
  synchronize();  // the base's: takes it off the list of works that compiled code waits for
  return true;
}

void WorkBase::abort() {
  C10_THROW_ERROR(NotImplementedError, "byway: one call cannot be aborted alone; abort the group");
}

c10::intrusive_ptr<c10::ivalue::Future> WorkBase::getFuture() {
  std::exception_ptr error;
  {
    const std::scoped_lock lock(mutex_);
    if (future_) return future_;
    future_ =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    if (!completed_) return future_;
    error = exception_;
  }
  if (error)
    future_->setError(error);
  else
    future_->markCompleted(outputs_);
  return future_;
}

void WorkBase::whenOver(std::function<void()> callback) {
  {
    const std::scoped_lock lock(mutex_);
    if (!completed_) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  callback();
}

void WorkBase::complete(const std::exception_ptr& error) {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  std::function<void()> endRecord;
  std::vector<std::function<void()>> callbacks;
  {
    const std::scoped_lock lock(mutex_);
    if (completed_) return;
    completed_ = true;
    exception_ = error;
    future = future_;
    endRecord = std::exchange(recordFunctionEndCallback_, nullptr);
    callbacks.swap(callbacks_);
  }
  if (endRecord) endRecord();
  cv_.notify_all();
  // What users chain to a future may wait for another.
  if (future) byway::Work::callbackMayBlock();
  if (future && error) future->setErrorIfNeeded(error);
  if (future && !error) future->markCompleted(outputs_);
  for (const auto& callback : callbacks) callback();
}

bool WorkBase::waitUntilCompleted(Seconds timeout) {
  std::unique_lock lock(mutex_);
  const auto over = [&] { return completed_; };
  if (timeout >= kNever) {
    cv_.wait(lock, over);
    return true;
  }
  return cv_.wait_for(lock, std::chrono::duration<double>(timeout), over);
}

CallWork::CallWork(c10d::OpType type, const char* title, CallContext context, const Tensors& inputs,
                   Tensors outputs, std::shared_ptr<Holder> holder)
    : WorkBase(context.rank, type, title, &inputs, std::move(outputs)),
      context_(std::move(context)),
      inputs_(inputs),
      holder_(std::move(holder)) {}

void CallWork::start(std::vector<byway::Work> parts) {
  parts_ = std::move(parts);
  open_ = parts_.size();
  if (parts_.empty()) {
    finishOnce();
    return;
  }
  for (const auto& part : parts_) {
    // The library drops its callback under its locks; what the callback holds goes before that.
    auto self = c10::intrusive_ptr<CallWork>::reclaim_copy(this);
    part.whenDone([self]() mutable { c10::intrusive_ptr<CallWork>(std::move(self))->partDone(); });
  }
}

void CallWork::partDone() {
  if (open_.fetch_sub(1) == 1) finishOnce();
}

// By the last callback or by a waiter that saw the end first.
void CallWork::finishOnce() {
  if (finishing_.exchange(true)) return;
  std::exception_ptr error;
  for (const auto& part : parts_) {
    if (!error) error = part.error();
  }
  try {
    if (error) std::rethrow_exception(error);
    holder_->copyBack();
    holder_->clear();
  } catch (const Error& e) {
    context_.state->note(e);
    CallContext context = context_;
    context.tensors = describe(inputs_);
    error = toTorch(e, context.text());
  } catch (...) {
    error = std::current_exception();
  }
  flightEnds(context_.flight, error != nullptr, sourceRank());
  holder_.reset();
  inputs_.clear();
  complete(error);
}

bool CallWork::waitEnd(Seconds timeout) {
  const Seconds until = SteadyClock::instance().now() + timeout;
  for (const auto& part : parts_) {
    try {
      if (!part.waitFor(std::max(0.0, until - SteadyClock::instance().now()))) return false;
    } catch (const Error&) {
      // finishOnce() finds it too.
    }
  }
  finishOnce();
  return waitUntilCompleted(std::max(1.0, until - SteadyClock::instance().now()));
}

int CallWork::sourceRank() const { return parts_.empty() ? -1 : parts_[0].source(); }

std::uint64_t CallWork::getSequencenumber() const {
  return static_cast<std::uint64_t>(context_.sequence);
}

WindowWork::WindowWork(int rank, std::vector<c10::intrusive_ptr<WorkBase>> calls)
    : WorkBase(rank, c10d::OpType::COALESCED, nullptr, nullptr, outputsOf(calls)),
      calls_(std::move(calls)),
      open_(calls_.size() + 1) {}

void WindowWork::start() {
  for (const auto& call : calls_) {
    auto self = c10::intrusive_ptr<WindowWork>::reclaim_copy(this);
    call->whenOver([self] { self->oneOver(); });
  }
  oneOver();
}

void WindowWork::oneOver() {
  if (open_.fetch_sub(1) != 1) return;
  for (const auto& call : calls_) {
    if (const auto error = call->exception()) return complete(error);
  }
  complete(nullptr);
}

bool WindowWork::waitEnd(Seconds timeout) {
  const Seconds until = SteadyClock::instance().now() + timeout;
  for (const auto& call : calls_) {
    const Seconds left = std::max(0.0, until - SteadyClock::instance().now());
    if (!call->waitEnd(left)) return false;
  }
  return waitUntilCompleted(std::max(1.0, until - SteadyClock::instance().now()));
}

}  // namespace byway::pytorch
