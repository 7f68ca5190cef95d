// SPDX-License-Identifier: BSD-3-Clause
#include "byway/comm/work.h"

#include <utility>

#include "byway/executor/engine.h"

namespace byway {

Work::Work(std::shared_ptr<Engine> engine, std::shared_ptr<Operation> operation)
    : engine_(std::move(engine)), operation_(std::move(operation)) {}

void Work::wait() const { (void)waitFor(kNever); }

bool Work::waitFor(Seconds timeout) const {
  if (!operation_) return true;
  if (!engine_->wait(*operation_, timeout)) return false;
  if (const auto failure = operation_->error()) std::rethrow_exception(failure);
  return true;
}

bool Work::done() const { return !operation_ || operation_->done(); }

std::exception_ptr Work::error() const {
  return operation_ && operation_->done() ? operation_->error() : nullptr;
}

void Work::whenDone(std::function<void()> callback) const {
  if (operation_)
    engine_->whenDone(*operation_, std::move(callback));
  else
    callback();
}

void Work::callbackMayBlock() { Engine::callbackMayBlock(); }

std::int64_t Work::sequence() const { return operation_ ? operation_->sequence() : sequence_; }

int Work::source(std::size_t index) const {
  return done() && operation_ ? operation_->sourceOf(index) : -1;
}

}  // namespace byway
