// SPDX-License-Identifier: BSD-3-Clause
// A call under way, as torch sees it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "byway/base/error.h"
#include "byway/comm/work.h"
#include "byway/torch/tensors.h"

namespace byway::pytorch {

// What a group's works tell it.
struct GroupState {
  std::atomic<bool> failed{false};
  std::atomic<ErrorCode> firstFailure{ErrorCode::Internal};  // once failed
  void note(const Error& error);
};

// What errors say about the call.
struct CallContext {
  std::string group;
  int rank = 0;
  int size = 1;
  const char* operation = "";  // "all_reduce"
  std::int64_t sequence = -1;  // among the group's collectives or its sends and receives
  std::string tensors;         // describe(), made for calls that fail at once only
  std::shared_ptr<GroupState> state;
  std::uint64_t flight = 0;  // its number in the flight log
  std::string text() const;
};

// What all works of this backend share: completion at most once, callbacks after it outside of
// every lock, and a future whose value is the list of outputs.
class WorkBase : public c10d::Work {
 public:
  WorkBase(int rank, c10d::OpType type, const char* title, const Tensors* inputs, Tensors outputs);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  Tensors result() override;
  bool wait(std::chrono::milliseconds timeout) override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  void abort() override;

  // Calls it after completion, at once if that is over.
  void whenOver(std::function<void()> callback);

  // Waits for the end, well or not; false when `timeout` seconds ran out.
  virtual bool waitEnd(Seconds timeout) = 0;

 protected:
  // Marks it completed and runs callbacks and the future's; the first call wins.
  void complete(const std::exception_ptr& error);
  bool waitUntilCompleted(Seconds timeout);

 private:
  // mutex_, cv_, completed_ and exception_ are the base's.
  const Tensors outputs_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::vector<std::function<void()>> callbacks_;
};

// One c10d call: one or several of the communicator's.
class CallWork final : public WorkBase {
 public:
  CallWork(c10d::OpType type, const char* title, CallContext context, const Tensors& inputs,
           Tensors outputs, std::shared_ptr<Holder> holder);
  // Attaches the calls; the work then completes by itself, whether or not anybody keeps it.
  void start(std::vector<byway::Work> parts);

  int sourceRank() const override;
  std::uint64_t getSequencenumber() const override;

 private:
  bool waitEnd(Seconds timeout) override;
  void partDone();
  void finishOnce();

  const CallContext context_;
  Tensors inputs_;  // until the end, for what errors say
  std::shared_ptr<Holder> holder_;
  std::vector<byway::Work> parts_;
  std::atomic<std::size_t> open_{0};
  std::atomic<bool> finishing_{false};
};

// All calls of a coalescing window.
class WindowWork final : public WorkBase {
 public:
  WindowWork(int rank, std::vector<c10::intrusive_ptr<WorkBase>> calls);
  void start();

 private:
  bool waitEnd(Seconds timeout) override;
  void oneOver();

  const std::vector<c10::intrusive_ptr<WorkBase>> calls_;
  std::atomic<std::size_t> open_;
};

}  // namespace byway::pytorch
