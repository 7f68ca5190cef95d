// SPDX-License-Identifier: BSD-3-Clause
#include "byway/transport/ucx/waiter.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "byway/base/error.h"

namespace byway::ucx {

Waiter::Waiter(int events, int ended) : events_(events), ended_(ended) {
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  alarm_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (wake_ >= 0 && alarm_ >= 0) return;
  const std::string reason = std::strerror(errno);
  if (wake_ >= 0) close(wake_);
  throw Error(ErrorCode::Resource, fmt::format("cannot make an event descriptor: {}", reason));
}

Waiter::~Waiter() {
  close(wake_);
  close(alarm_);
}

void Waiter::setAlarm(Seconds until) {
  constexpr Seconds kFarAway = 1e9;
  const Seconds at = until < kFarAway ? std::max(until, 1e-9) : kNever;
  if (at == alarmAt_) return;
  alarmAt_ = at;
  itimerspec spec{};  // zero switches it off
  if (at != kNever) {
    spec.it_value.tv_sec = static_cast<time_t>(at);
    spec.it_value.tv_nsec = static_cast<long>((at - std::floor(at)) * 1e9);
    if (spec.it_value.tv_sec == 0 && spec.it_value.tv_nsec == 0) spec.it_value.tv_nsec = 1;
  }
  timerfd_settime(alarm_, TFD_TIMER_ABSTIME, &spec, nullptr);
}

void Waiter::sleep(Seconds until) {
  setAlarm(until);
  std::array<pollfd, 4> sources{
      {{events_, POLLIN, 0}, {wake_, POLLIN, 0}, {alarm_, POLLIN, 0}, {ended_, POLLIN, 0}}};
  // Interrupted by a signal: the caller looks whether there is anything to do and comes back.
  if (poll(sources.data(), sources.size(), -1) <= 0) return;
  std::uint64_t count = 0;
  if (sources[1].revents != 0) (void)!read(wake_, &count, sizeof count);
  if (sources[2].revents != 0) {
    (void)!read(alarm_, &count, sizeof count);
    alarmAt_ = kNever;  // it has gone off and is silent until it is set again
  }
  if (sources[3].revents != 0) sawEnded_.store(true, std::memory_order_relaxed);
}

void Waiter::wake() const {
  const std::uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);
}

}  // namespace byway::ucx
