// SPDX-License-Identifier: BSD-3-Clause
#include "byway/base/clock.h"

#include <ctime>

namespace byway {

Seconds SteadyClock::now() const {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<Seconds>(t.tv_sec) + static_cast<Seconds>(t.tv_nsec) * 1e-9;
}

SteadyClock& SteadyClock::instance() {
  static SteadyClock clock;
  return clock;
}

}  // namespace byway
