// SPDX-License-Identifier: BSD-3-Clause
// Sleeping on UCX's event descriptor, an alarm, the end of a process, and a wake-up from any
// thread. Private to ucx/.
#pragma once

#include <atomic>

#include "byway/base/clock.h"

namespace byway::ucx {

class Waiter {
 public:
  // Owns neither descriptor; `ended` becomes readable when a watched process ends. Throws
  // Error{Resource}.
  Waiter(int events, int ended);
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // At most one thread at a time. `until` is on CLOCK_MONOTONIC.
  void sleep(Seconds until);
  // Any thread.
  void wake() const;
  // Whether a sleep() has seen `ended` readable since the last call.
  bool takeEnded() { return sawEnded_.exchange(false, std::memory_order_relaxed); }

 private:
  void setAlarm(Seconds until);

  int events_, ended_;
  std::atomic<bool> sawEnded_{false};
  int wake_ = -1;
  int alarm_ = -1;  // a timerfd: absolute, and without the slack that poll()'s time-out has
  Seconds alarmAt_ = kNever;
};

}  // namespace byway::ucx
