// SPDX-License-Identifier: BSD-3-Clause
// A port on an ideal clock: all links of a rank in one direction share it. Private to paced/.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>

#include "byway/base/clock.h"

namespace byway::paced {

// Serves in the order of reserve(), and never idles while something that may run is reserved: who
// comes later fills the gaps that earlier ones left.
class Port {
 public:
  struct Span {
    Seconds start = 0, end = 0;
  };
  // Takes the first `duration` seconds of the port that are free from `earliest` on.
  Span reserve(Seconds earliest, Seconds duration) {
    if (duration <= 0) return {earliest, earliest};
    Span span{kNever, earliest};
    auto next = busy_.upper_bound(earliest);
    if (next != busy_.begin()) span.end = std::max(span.end, std::prev(next)->second);
    for (Seconds left = duration; left > 0;) {
      const Seconds gap = (next == busy_.end() ? kNever : next->first) - span.end;
      if (gap > 0) {
        span.start = std::min(span.start, span.end);
        span.end += std::min(gap, left);
        left -= gap;
      }
      if (left > 0) span.end = (next++)->second;
    }
    busy_.erase(busy_.lower_bound(span.start), busy_.lower_bound(span.end));
    busy_[span.start] = span.end;
    return span;
  }
  // Nothing will be reserved before `time` any more.
  void forget(Seconds time) {
    while (!busy_.empty() && busy_.begin()->second < time) busy_.erase(busy_.begin());
  }

 private:
  std::map<Seconds, Seconds> busy_;  // start to end, apart from each other
};

}  // namespace byway::paced
