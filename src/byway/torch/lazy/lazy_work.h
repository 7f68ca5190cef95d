// SPDX-License-Identifier: BSD-3-Clause
// The Work of a recorded call.
#pragma once

#include <mutex>
#include <optional>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "byway/torch/lazy/recorder.h"

namespace byway::pytorch::lazy {

// wait() does not wait: it says where in the program the results are needed, and from there on the
// user's tensors hold them. A Work that is dropped says so when it is.
class LazyWork final : public c10d::Work {
 public:
  // `tensors`: the user's, whose contents the call gives. Without `started` they have them already.
  LazyWork(c10d::OpType type, std::optional<StartedCall> started, Tensors tensors);
  ~LazyWork() override;

  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override { wait(kNoTimeout); }
  // Runs what was recorded, as nothing else could make it complete.
  bool isCompleted() override;
  bool isSuccess() const override { return true; }
  std::exception_ptr exception() const override { return nullptr; }
  std::vector<at::Tensor> result() override;
  // Complete, holding the lazy tensors.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  std::mutex once_;
  std::optional<StartedCall> started_;
  Tensors tensors_;
};

// Between these, on this thread, Works that are dropped are those of a window's calls, of which
// none is waited for before the last one has begun.
void beginWindow();
void endWindow();

}  // namespace byway::pytorch::lazy
