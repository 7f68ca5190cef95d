// SPDX-License-Identifier: BSD-3-Clause
// One call of the backend while it is being made.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "byway/comm/communicator.h"
#include "byway/torch/tensors.h"

namespace byway::pytorch {

struct CallKind {
  c10d::OpType type;
  const char* name;         // torch's, for errors and the hook: "all_reduce"
  const char* title;        // of the profiler's range: "byway:all_reduce"
  const char* titleAsGloo;  // where the backend answers to that name
  const char* record;       // torch's name in records of communication
  bool isMessage = false;   // point to point
};

#define BYWAY_CALL_KIND_OF(type, name, range, record) \
  ::byway::pytorch::CallKind { type, name, "byway:" range, "gloo:" range, record }
#define BYWAY_CALL_KIND(type, name, range, record) \
  BYWAY_CALL_KIND_OF(c10d::OpType::type, name, range, record)

class Call {
 public:
  Call(Communicator& communicator, std::chrono::milliseconds timeout);

  Communicator& communicator() { return communicator_; }
  Holder& holder() { return *holder_; }
  const std::shared_ptr<Holder>& sharedHolder() const { return holder_; }
  CallOptions options() const;
  // Makes a call of the communicator that belongs to this one. From here on the communicator itself
  // tells the other ranks of errors.
  template <typename Fn>
  void submit(const Fn& fn) {
    submitting_ = true;
    works_.push_back(fn(options()));
  }
  bool submitting() const { return submitting_; }
  std::vector<Work> takeWorks() { return std::move(works_); }

 private:
  Communicator& communicator_;
  std::optional<Seconds> timeout_;
  std::shared_ptr<Holder> holder_ = std::make_shared<Holder>();
  std::vector<Work> works_;
  bool submitting_ = false;
};

}  // namespace byway::pytorch
