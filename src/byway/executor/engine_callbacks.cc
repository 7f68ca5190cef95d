// SPDX-License-Identifier: BSD-3-Clause
// An engine's completion callbacks, which run outside its lock.
#include <algorithm>
#include <cstddef>
#include <exception>
#include <iterator>
#include <string>
#include <utility>

#include "byway/base/log.h"
#include "byway/executor/engine.h"

namespace byway {
namespace {

// Callbacks that this thread is to run, and those of the callback that it is within.
struct Batch {
  Engine* engine = nullptr;
  std::vector<std::function<void()>> callbacks;
  std::size_t next = 0;
  Batch* outer = nullptr;
};

thread_local Batch* current = nullptr;

}  // namespace

// A callback may wait for other calls or take its time, so a waiter gives up the right to drive
// meanwhile. False when somebody else has it afterwards.
bool Engine::runCallbacks(std::unique_lock<std::mutex>& lock, bool asWaiter) {
  if (callbacks_.empty()) return true;
  if (asWaiter) {
    driving_ = false;
    --waiters_;
  }
  changed_.notify_all();
  while (!callbacks_.empty()) {
    auto callbacks = std::exchange(callbacks_, {});
    lock.unlock();
    runBatch(std::move(callbacks));
    lock.lock();
  }
  if (!asWaiter) return true;
  ++waiters_;
  if (driving_) return false;
  return driving_ = true;
}

void Engine::runBatch(std::vector<std::function<void()>> callbacks) {
  Batch batch{this, std::move(callbacks), 0, current};
  current = &batch;
  while (batch.next < batch.callbacks.size()) {
    const auto callback = std::move(batch.callbacks[batch.next++]);
    try {
      callback();
    } catch (const std::exception& e) {
      log(LogLevel::Error, std::string("byway: a completion callback threw: ") + e.what());
    } catch (...) {
      log(LogLevel::Error, "byway: a completion callback threw");
    }
  }
  current = batch.outer;
}

void Engine::callbackMayBlock() {
  for (Batch* batch = current; batch != nullptr; batch = batch->outer) {
    const auto rest = batch->callbacks.begin() + static_cast<std::ptrdiff_t>(batch->next);
    std::vector<std::function<void()>> later(std::make_move_iterator(rest),
                                             std::make_move_iterator(batch->callbacks.end()));
    batch->callbacks.erase(rest, batch->callbacks.end());
    batch->engine->leaveToOthers(std::move(later));
  }
}

void Engine::leaveToOthers(std::vector<std::function<void()>> callbacks) {
  const Guard guard(*this);
  std::move(callbacks.begin(), callbacks.end(), std::back_inserter(callbacks_));
  if (leader_ == std::this_thread::get_id() && !stopping_) {
    leader_ = {};
    ++threadsAway_;
    if (followers_ > 0)
      leaderGone_.notify_all();
    else
      threads_.emplace_back([this] { threadMain(); });
  }
  alarmDriver();
  changed_.notify_all();
  callThread();
}

}  // namespace byway
