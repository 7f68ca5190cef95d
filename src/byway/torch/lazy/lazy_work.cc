// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/lazy/lazy_work.h"

#include <ATen/core/ivalue.h>

#include <utility>

#include "byway/torch/lazy/flush.h"
#include "byway/torch/lazy/record_table.h"

namespace byway::pytorch::lazy {

LazyWork::LazyWork(c10d::OpType type, std::optional<StartedCall> started, Tensors tensors)
    : Work(-1, type), started_(std::move(started)), tensors_(std::move(tensors)) {}

LazyWork::~LazyWork() {
  try {
    if (!started_ || tensors_.empty()) return;
    markUnwaited(bringResults());
  } catch (...) {
    // After a failed step: the tensors stay as they are.
  }
}

Tensors LazyWork::bringResults() {
  const std::scoped_lock lock(once_);
  if (!started_) return {};
  const StartedCall started = *std::exchange(started_, std::nullopt);
  if (tensors_.empty()) {
    Recorder::instance().recordAwait(started);
    return {};
  }
  Tensors results = Recorder::instance().recordFinish(started);
  for (std::size_t i = 0; i < tensors_.size(); ++i) writeBack(tensors_[i], results[i]);
  return results;
}

bool LazyWork::wait(std::chrono::milliseconds /*timeout*/) {
  RecordTable::instance().checkUsable();
  bringResults();
  return true;
}

bool LazyWork::isCompleted() {
  wait(kNoTimeout);
  flush();
  return true;
}

std::vector<at::Tensor> LazyWork::result() {
  wait(kNoTimeout);
  return tensors_;
}

c10::intrusive_ptr<c10::ivalue::Future> LazyWork::getFuture() {
  wait(kNoTimeout);
  auto future = c10::make_intrusive<c10::ivalue::Future>(
      c10::ListType::create(c10::TensorType::get()));
  future->markCompleted(c10::IValue(tensors_));
  return future;
}

}  // namespace byway::pytorch::lazy
