// SPDX-License-Identifier: BSD-3-Clause
// One message on a paced link, and the grid of ticks on which data is fetched. Private to paced/.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>

#include "byway/transport/wire.h"

namespace byway::paced {

// The times offset + k * tick; with tick 0 one step that never ends.
class TickGrid {
 public:
  TickGrid(Seconds tick, double phase) : tick_(tick), offset_(phase * tick) {}

  Seconds after(Seconds now) const {
    if (tick_ <= 0) return kNever;
    const Seconds next = (std::floor((now - offset_) / tick_) + 1) * tick_ + offset_;
    return next > now ? next : next + tick_;  // rounding may land on `now`
  }
  // The last tick that is not after `t`: when bytes that are due at `t` have to be fetched.
  Seconds upTo(Seconds t) const {
    if (tick_ <= 0) return t;
    return std::floor((t - offset_) / tick_) * tick_ + offset_;
  }

 private:
  Seconds tick_;
  Seconds offset_;
};

// What one fetch() asked for.
struct Part {
  std::uint64_t offset = 0;
  Buffer to;
  Completion done;
  std::uint64_t issued = 0;
};

struct Flow {
  Arrival arrival;
  double rate = 0;  // 0: unlimited
  Seconds start = 0;
  Seconds end = 0;
  Seconds horizon = 0;  // all bytes that are due before it were asked for
  std::deque<Part> parts;
  std::size_t inFlight = 0;       // slices that the inner wire is fetching
  Outcome outcome = Outcome::Ok;  // another one stops it
  bool isQueued = false;          // waits for its delivery in its link's queue

  // The first byte that was not asked for yet, or the message's size.
  std::uint64_t firstUnissued() const {
    std::uint64_t first = arrival.header.bytes;
    for (const Part& part : parts) {
      if (part.issued < part.to.bytes) first = std::min(first, part.offset + part.issued);
    }
    return first;
  }
  bool isIssued() const {
    return outcome != Outcome::Ok || firstUnissued() == arrival.header.bytes;
  }
  bool isDue(Seconds now) const {
    return inFlight == 0 && isIssued() && (now >= end || outcome != Outcome::Ok);
  }
  Seconds timeOf(std::uint64_t byte) const {
    return rate > 0 ? start + static_cast<double>(byte) / rate : start;
  }
  // How many bytes the link has carried at `t`, in whole cache lines.
  std::uint64_t carriedAt(Seconds t) const {
    const std::uint64_t bytes = arrival.header.bytes;
    if (t < start) return 0;
    const double ideal = (t - start) * rate;
    if (rate <= 0 || !(ideal < static_cast<double>(bytes))) return bytes;
    constexpr std::uint64_t kLine = 64;
    return std::min(bytes, (static_cast<std::uint64_t>(ideal) + kLine) / kLine * kLine);
  }
};

}  // namespace byway::paced
