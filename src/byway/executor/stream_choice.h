// SPDX-License-Identifier: BSD-3-Clause
// How what is published on a board is written: past the caches, or into them (docs/host.md).
//
// Which is cheaper depends on where the ranks run. Between cores that share no cache, memory that
// another has read is expensive to get back line by line; between cores that share one it costs
// little, and the way past the caches more, for the readers above all. Where ranks run may change
// at any time, and the system may not know it (a virtual machine). So now and then the other way is
// tried, for as many publications as it takes until all places were written that way, and the last
// of them are compared with what the way in use costs.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "byway/base/clock.h"

namespace byway {

class StreamChoice {
 public:
  // Writes `bytes` by `write(streamed)`.
  template <typename Write>
  void run(std::uint64_t bytes, const Clock& clock, const Write& write) {
    const Turn turn = next();
    if (!turn.isTimed) return write(turn.streamed);
    const Seconds start = clock.now();
    write(turn.streamed);
    learn(turn, (clock.now() - start) / static_cast<double>(bytes));
  }
  bool streams() const { return streams_; }

  // The parts of run(). For tests.
  struct Turn {
    bool streamed, isTimed, isTry;
  };
  Turn next();
  void learn(const Turn& turn, double secondsPerByte);

  static constexpr std::uint32_t kTimed = 16;  // one of so many is timed
  static constexpr std::uint32_t kTry = 20;    // publications of a try; the last kTryTimed count
  static constexpr std::uint32_t kTryTimed = 4;
  static constexpr std::uint32_t kTryLeast = 2;  // where these show that there is no hope
  static constexpr std::uint32_t kFirstTry = 128, kLastTry = 4096;  // publications between tries

 private:
  void compare();

  bool streams_ = true;
  std::uint32_t since_ = 0, tryAfter_ = kFirstTry;
  std::uint32_t tryLeft_ = 0, hopeless_ = 0;
  double cost_ = 0;   // seconds a byte of the way in use; 0: not known
  double atTry_ = 0;  // the same when the other way was tried last
  double tried_ = 0;  // the least of the try so far
};

// One for each size, up to a factor of two: costs a byte depend on it.
class StreamChoices {
 public:
  static constexpr std::uint64_t kLeast =
      2048;  // what is smaller, in all or a part of it, is never streamed
  StreamChoice& of(std::uint64_t bytes) {
    const auto size = static_cast<std::size_t>(std::bit_width(bytes / kLeast));
    return choices_[std::min(size, choices_.size() - 1)];
  }

 private:
  std::array<StreamChoice, 12> choices_;
};

}  // namespace byway
