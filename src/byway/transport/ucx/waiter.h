// SPDX-License-Identifier: BSD-3-Clause
// Sleeping on UCX's event descriptor, an alarm and a wake-up from any thread. Private to ucx/.
#pragma once

#include "byway/base/clock.h"

namespace byway::ucx {

class Waiter {
 public:
  // Does not own `events`. Throws Error{Resource}.
  explicit Waiter(int events);
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // At most one thread at a time. `until` is on CLOCK_MONOTONIC.
  void sleep(Seconds until);
  // Any thread.
  void wake() const;

 private:
  void setAlarm(Seconds until);

  int events_;
  int wake_ = -1;
  int alarm_ = -1;  // a timerfd: absolute, and without the slack that poll()'s time-out has
  Seconds alarmAt_ = kNever;
};

}  // namespace byway::ucx
