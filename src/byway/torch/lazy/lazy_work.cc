// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/lazy/lazy_work.h"

#include <ATen/core/ivalue.h>

#include <utility>

#include "byway/torch/lazy/flush.h"
#include "byway/torch/lazy/record_table.h"

namespace byway::pytorch::lazy {

namespace {

struct Dropped {
  StartedCall started;
  Tensors tensors;
};

thread_local int windows = 0;
thread_local std::vector<Dropped> droppedInWindow;

void bringResults(const StartedCall& started, const Tensors& tensors, bool isUnwaited = false) {
  const Tensors results = Recorder::instance().recordFinish(started, isUnwaited);
  for (std::size_t i = 0; i < tensors.size(); ++i) writeBack(tensors[i], results[i]);
}

// What the peer needs for a call that nobody waits for may be a later call of this process.
void bringDropped(const Dropped& one) {
  Recorder::instance().putCallsFirst();
  bringResults(one.started, one.tensors, true);
}

}  // namespace

void beginWindow() { ++windows; }

void endWindow() {
  if (windows == 0 || --windows > 0) return;
  for (const Dropped& one : std::exchange(droppedInWindow, {})) bringDropped(one);
}

LazyWork::LazyWork(c10d::OpType type, std::optional<StartedCall> started, Tensors tensors)
    : Work(-1, type), started_(std::move(started)), tensors_(std::move(tensors)) {}

LazyWork::~LazyWork() {
  try {
    if (!started_ || tensors_.empty()) return;
    if (windows > 0) {
      droppedInWindow.push_back({std::move(*started_), std::move(tensors_)});
    } else {
      bringDropped({std::move(*started_), std::move(tensors_)});
    }
  } catch (...) {
    // After a failed step: the tensors stay as they are.
  }
}

bool LazyWork::wait(std::chrono::milliseconds /*timeout*/) {
  RecordTable::instance().checkUsable();
  const std::scoped_lock lock(once_);
  if (!started_) return true;
  const StartedCall started = *std::exchange(started_, std::nullopt);
  if (tensors_.empty()) {
    Recorder::instance().recordAwait(started);
  } else {
    bringResults(started, tensors_);
  }
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
  auto future =
      c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
  future->markCompleted(c10::IValue(tensors_));
  return future;
}

}  // namespace byway::pytorch::lazy
