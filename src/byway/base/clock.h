// SPDX-License-Identifier: BSD-3-Clause
// Time as the library sees it: seconds on a clock that the owner supplies, so that the same code
// runs on the machine's clock and on a virtual one.
#pragma once

#include <limits>

namespace byway {

using Seconds = double;
inline constexpr Seconds kNever = std::numeric_limits<Seconds>::infinity();

class Clock {
 public:
  virtual ~Clock() = default;
  // Seconds since an origin common to all processes of the host.
  virtual Seconds now() const = 0;
};

// CLOCK_MONOTONIC.
class SteadyClock final : public Clock {
 public:
  Seconds now() const override;
  static SteadyClock& instance();
};

// Stands still until it is told to move. Not thread-safe: one thread drives everything on it.
class VirtualClock final : public Clock {
 public:
  Seconds now() const override { return now_; }
  void advanceTo(Seconds t) {
    if (t > now_) now_ = t;
  }

 private:
  Seconds now_ = 0;
};

}  // namespace byway
