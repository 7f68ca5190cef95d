// SPDX-License-Identifier: BSD-3-Clause
#include "byway/transport/inproc/mailbox.h"

#include <cerrno>
#include <cmath>
#include <ctime>
#include <utility>

namespace byway {

InprocFabric::InprocFabric() : impl_(std::make_unique<Impl>()) {}
InprocFabric::~InprocFabric() = default;

namespace inproc {

Signal::Signal() {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&condition_, &attributes);
  pthread_condattr_destroy(&attributes);
}

bool Signal::wait(std::unique_lock<std::mutex>& lock, Seconds until) {
  pthread_mutex_t* mutex = lock.mutex()->native_handle();
  constexpr Seconds kFarAway = 1e9;
  if (!(until < kFarAway)) {
    pthread_cond_wait(&condition_, mutex);
    return true;
  }
  if (until <= 0) return false;
  timespec deadline{};
  deadline.tv_sec = static_cast<time_t>(until);
  deadline.tv_nsec = static_cast<long>((until - std::floor(until)) * 1e9);
  return pthread_cond_timedwait(&condition_, mutex, &deadline) != ETIMEDOUT;
}

bool Mailbox::push(Item item) {
  const std::scoped_lock lock(mutex_);
  if (isClosed_) return false;
  items_.push_back(std::move(item));
  signal_.notify();
  return true;
}

void Mailbox::take(std::deque<Item>& to) {
  const std::scoped_lock lock(mutex_);
  for (Item& item : items_) to.push_back(std::move(item));
  items_.clear();
}

bool Mailbox::empty() const {
  const std::scoped_lock lock(mutex_);
  return items_.empty();
}

void Mailbox::wake() {
  const std::scoped_lock lock(mutex_);
  wokenUp_ = true;
  signal_.notify();
}

void Mailbox::sleep(Seconds until) {
  std::unique_lock lock(mutex_);
  while (items_.empty() && !wokenUp_) {
    if (!signal_.wait(lock, until)) break;
  }
  wokenUp_ = false;
}

void Mailbox::close(std::deque<Item>& to) {
  take(to);
  const std::scoped_lock lock(mutex_);
  isClosed_ = true;
  for (Item& item : items_) to.push_back(std::move(item));
  items_.clear();
}

}  // namespace inproc
}  // namespace byway
