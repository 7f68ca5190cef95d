// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/stream_choice.h"

#include <algorithm>

namespace byway {
namespace {

// A write into the caches may take so many times as long as one past them: its readers gain more
// (docs/host.md).
constexpr double kCachedMayTake = 2.5;
constexpr double kFarWorse = 1.5;
constexpr double kHopeless = 5;  // a try ends early
// Writes into the caches have become so much slower: ranks run elsewhere now. The way past them
// costs the same everywhere.
constexpr double kChanged = 1.5;
// Of what is measured once: the rank may have been interrupted.
constexpr double kMostJump = 4;
constexpr double kWeight = 0.25;

}  // namespace

StreamChoice::Turn StreamChoice::next() {
  if (tryLeft_ == 0 && ++since_ >= tryAfter_) {
    tryLeft_ = kTry;
    tried_ = 0;
    hopeless_ = 0;
  }
  if (tryLeft_ == 0) return {streams_, since_ % kTimed == 1, false};
  const Turn turn{!streams_, true, true};
  if (--tryLeft_ == 0) since_ = 0;
  return turn;
}

void StreamChoice::learn(const Turn& turn, double secondsPerByte) {
  if (turn.isTry) {
    const bool isHopeless = cost_ > 0 && secondsPerByte > kHopeless * cost_;
    hopeless_ = isHopeless ? hopeless_ + 1 : 0;
    if (hopeless_ == kTryLeast) {
      tried_ = secondsPerByte;
      tryLeft_ = since_ = 0;
    } else if (tryLeft_ < kTryTimed) {
      tried_ = tried_ == 0 ? secondsPerByte : std::min(tried_, secondsPerByte);
    }
    if (tryLeft_ == 0) compare();
    return;
  }
  if (cost_ == 0)
    cost_ = secondsPerByte;
  else
    cost_ += kWeight * (std::min(secondsPerByte, kMostJump * cost_) - cost_);
  if (!streams_ && cost_ > kChanged * atTry_) since_ = tryAfter_;
}

void StreamChoice::compare() {
  atTry_ = cost_;
  if (cost_ == 0) return;
  const double cached = streams_ ? tried_ : cost_, streamed = streams_ ? cost_ : tried_;
  const double ratio = cached / streamed / kCachedMayTake;
  const bool streams = ratio > 1;
  const bool isClear = std::max(ratio, 1 / ratio) > kFarWorse;
  tryAfter_ = isClear && streams == streams_ ? std::min(2 * tryAfter_, kLastTry) : kFirstTry;
  if (streams == streams_) return;
  streams_ = streams;
  cost_ = atTry_ = tried_;
}

}  // namespace byway
