// SPDX-License-Identifier: BSD-3-Clause
// Completions that are due, kept until progress() may call them.
#pragma once

#include <deque>
#include <utility>

#include "byway/transport/wire.h"

namespace byway {

class CompletionQueue {
 public:
  void push(Completion done, Outcome outcome) { due_.emplace_back(done, outcome); }
  bool empty() const { return due_.empty(); }

  // Calls what is due now; what the calls add waits for the next drain. True if anything was
  // called.
  bool drain() {
    const std::size_t count = due_.size();
    for (std::size_t i = 0; i < count && !due_.empty(); ++i) {
      const auto [done, outcome] = due_.front();
      due_.pop_front();
      done(outcome);
    }
    return count > 0;
  }

 private:
  std::deque<std::pair<Completion, Outcome>> due_;
};

}  // namespace byway
