// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/engine.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "byway/base/cores.h"
#include "byway/base/log.h"
#include "byway/executor/waiting_place.h"

namespace byway {
namespace {

// A spin that ends before the wait does was in vain, and worse where two ranks share a core: so the
// time to spin doubles with each that was not, and halves where the next yield brought it.
constexpr Seconds kShortestSpin = 0.5e-6;
constexpr Seconds kLongestSpin = 50e-6;
// A caller that makes call after call drives by itself, and waking the thread for each would cost
// more than the call. So while calls come the thread looks every kGrace only. If it then finds that
// nobody has waited (for a future, one waits elsewhere), it drives from the next call on, until
// somebody waits here again: only the first such call is held up.
// Shorter rests keep a core from being idle long enough to take one of two ranks that share the
// other.
constexpr Seconds kGrace = 1e-3;
constexpr Seconds kLongestRest = 20e-3;  // below a second; while somebody waits, and so drives
// Calls that follow each other so closely do not ask the transport for news between them.
constexpr Seconds kNews = 20e-6;
// Of cycleCount(), which counts one to some per nanosecond.
constexpr std::uint64_t kRecentCycles = 10'000;
// While the board (transport/mapped) is asked, the transport is asked each so many times.
constexpr unsigned kBoardTurns = 8;
constexpr Seconds kYield = 20e-6;
// A virtual machine's system may take a core that is idle for one that is not there: whoever sleeps
// is woken on the core of the rank that wakes it, where the two then stay. So where each rank has a
// core, a wait of the usual length does not sleep.
constexpr Seconds kYieldApart = 300e-6;
// With more ranks than cores all of them have to come by before a board has what one waits for.
constexpr Seconds kYieldOnBoard = 100e-6;
// A sleep on a board (a futex) sees nothing of the transport, which is looked after in between.
constexpr Seconds kSleepOnBoard = 2e-3;
// A rank that has stepped aside from another does not for so long: it costs some 20 us.
constexpr Seconds kApart = 1e-3;
constexpr Seconds kCloseTransport = 2.0;
constexpr Seconds kFar = 1e18;  // drive() takes kNever for "stop"

std::atomic<unsigned> forkGeneration{0};

// A forked child must not touch what it shares with its parent.
void watchForks() {
  static const int once = pthread_atfork(nullptr, nullptr, [] { ++forkGeneration; });
  (void)once;
}

std::chrono::duration<double> secondsUntil(Seconds until, const Clock& clock) {
  constexpr Seconds kLongest = 3600;
  return std::chrono::duration<double>(std::clamp(until - clock.now(), 0.0, kLongest));
}

}  // namespace

Engine::Guard::Guard(Engine& engine) : lock_(engine.mutex_, std::defer_lock) {
  engine.checkProcess();
  if (lock_.try_lock()) return;
  ++engine.wanting_;
  lock_.lock();
  --engine.wanting_;
}

Engine::Engine(std::unique_ptr<Transport> transport, EngineOptions options)
    : transport_(std::move(transport)),
      options_(options),
      onSteadyClock_(dynamic_cast<const SteadyClock*>(&clock()) != nullptr) {
  watchForks();
  forkGeneration_ = forkGeneration.load();
  transport_->setSink(this);
  if (options_.progressThread) threads_.emplace_back([this] { threadMain(); });
}

std::shared_ptr<Engine> Engine::make(std::unique_ptr<Transport> transport, EngineOptions options) {
  // In a forked child nothing of an engine is the child's: not the lock and who sleeps on it, not
  // the thread, not the descriptors. It is left alone.
  return {new Engine(std::move(transport), options), [](Engine* engine) {
            if (engine->forkGeneration_ != forkGeneration.load()) return;
            engine->shutdown();
            if (engine->threads_.empty()) delete engine;  // else one is still within a callback
          }};
}

Engine::~Engine() { shutdown(); }

void Engine::shutdown() {
  if (forkGeneration_ != forkGeneration.load()) return;
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(stopping_, true)) return;
    changed_.notify_all();
    wakeSleeper();
    transport_->wake();
  }
  callThread();
  std::unique_lock lock(mutex_);
  leaderGone_.notify_all();
  leaderGone_.wait(lock, [&] { return leader_ == std::thread::id{}; });
  try {
    for (auto& [id, channel] : channels_) {
      if (channel->operationsUnderWay() == 0 && !channel->broken()) channel->sayGoodbye();
      channel->breakWith(Error(ErrorCode::Aborted, "the process shuts down", channel->rank()),
                         channel->operationsUnderWay() > 0);
    }
    transport_->close(kCloseTransport);
    for (auto& [id, channel] : channels_) channel->advance();
  } catch (const std::exception& e) {
    log(LogLevel::Error, std::string("byway: while shutting down: ") + e.what());
  }
  changed_.notify_all();
  const auto bound = std::chrono::duration<double>(kCloseTransport);
  if (!leaderGone_.wait_for(lock, bound, [&] { return threadsAway_ == 0; })) {
    log(LogLevel::Warning, "byway: a completion callback has not returned; its thread is left");
    for (auto& thread : threads_) thread.detach();
    return;
  }
  lock.unlock();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void Engine::checkProcess() const {
  if (forkGeneration_ != forkGeneration.load(std::memory_order_relaxed)) {
    throw Error(ErrorCode::Unsupported,
                "Byway cannot be used in a forked child of the process that started it; start the "
                "child with spawn or exec, or create communicators in the child alone");
  }
}

Address Engine::address() {
  const Guard guard(*this);
  return transport_->address();
}

PeerId Engine::connect(std::span<const std::byte> address) {
  const Guard guard(*this);
  const PeerId peer = transport_->connect(address);
  if (!transport_->isLost(peer)) return peer;
  throw Error(ErrorCode::PeerLost, "its process ended or cannot be reached");
}

Channel& Engine::open(ChannelOptions options) {
  const Guard guard(*this);
  const std::uint64_t id = options.id;
  if (channels_.count(id) != 0) {
    throw Error(ErrorCode::InvalidArgument,
                "communicator id " + std::to_string(id) + " is already in use in this process");
  }
  auto& channel = channels_[id];
  channel = std::make_shared<Channel>(*transport_, std::move(options));
  std::erase_if(early_, [&](const auto& early) {
    if (early.second.communicator != id) return false;
    act(*channel, early.first, early.second);
    return true;
  });
  for (int r = 0; r < channel->ranks(); ++r) {
    departed_.erase(channel->peer(r));
    if (r != channel->rank() && transport_->isLost(channel->peer(r))) {
      channel->peerLost(channel->peer(r));
    }
  }
  return *channel;
}

void Engine::close(Channel& channel, Seconds bound) {
  waitFor([&] { return channel.operationsUnderWay() == 0; }, clock().now() + bound);
  Guard guard(*this);
  if (channel.operationsUnderWay() > 0) {
    channel.breakWith(Error(ErrorCode::Aborted,
                            "the communicator was destroyed with this call under "
                            "way"),
                      true);
  } else if (!channel.broken()) {
    channel.sayGoodbye();
  }
  // Buffers that the transport still holds get a second to be let go.
  constexpr Seconds kDrain = 1.2;
  guard.lock().unlock();
  waitFor([&] { return channel.idle(); }, clock().now() + kDrain);
  Guard again(*this);
  for (auto& callback : channel.takeCallbacks()) callbacks_.push_back(std::move(callback));
  // Whoever still holds the channel is refused from here on.
  channel.breakWith(Error(ErrorCode::Aborted, "the communicator was destroyed", channel.rank()),
                    false);
  transport_->cancel(channel.id());
  ended_.insert(channel.id());
  if (channel.idle()) channels_.erase(channel.id());
  runCallbacks(again.lock(), false);
}

void Engine::abort(Channel& channel, const std::string& why) {
  fail(channel, Error(ErrorCode::Aborted, why, channel.rank()));
}

void Engine::fail(Channel& channel, const Error& error) {
  const Guard guard(*this);
  channel.breakWith(error, true);
  alarmDriver();
  changed_.notify_all();
}

Seconds Engine::askTime() {
  askedCycles_ = cycleCount();
  return askedAt_ = clock().now();
}

// As it was some microseconds ago at most: a call of a few bytes takes no longer than to ask ten
// times.
Seconds Engine::recentTime() {
  const bool isRecent =
      onSteadyClock_ && askedCycles_ != 0 && cycleCount() - askedCycles_ < kRecentCycles;
  return isRecent ? askedAt_ : askTime();
}

// Under the lock.
template <typename Submit>
decltype(auto) Engine::start(Channel& channel, const Submit& submit) {
  calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  // So that a failure reported before the call is met by the call.
  const Seconds now = recentTime();
  if (!options_.progressThread || now > lastProgress_ + kNews) progressOnce();
  const Channel::Moment moment(channel, now);
  decltype(auto) operation = submit();
  if (!operation->done()) alarmDriver();
  return operation;
}

std::shared_ptr<CollectiveOperation> Engine::submit(Channel& channel, OperationRequest&& request) {
  const Guard guard(*this);
  return start(channel, [&] { return channel.submit(std::move(request)); });
}

const std::shared_ptr<CollectiveOperation>& Engine::submitLocked(Channel& channel,
                                                                 RepeatedCall& call,
                                                                 CallData&& data) {
  return start(channel, [&]() -> decltype(auto) { return channel.submit(call, std::move(data)); });
}

void Engine::supply(Channel& channel, CollectiveOperation& operation, OperationRequest&& request) {
  const Guard guard(*this);
  channel.supply(operation, std::move(request));
  alarmDriver();
}

void Engine::reject(Channel& channel, CollectiveOperation& operation, const Error& error) {
  const Guard guard(*this);
  operation.fail(error);
  channel.advance();
  alarmDriver();
}

std::shared_ptr<Operation> Engine::submit(Channel& channel, PointToPointRequest&& request) {
  const Guard guard(*this);
  return start(channel, [&] { return channel.submit(std::move(request)); });
}

void Engine::refuse(Channel& channel, const Error& error) {
  const Guard guard(*this);
  channel.refuse(error);
}

// New work may bring the next timer forward or be over already, so whoever sleeps must look again.
void Engine::alarmDriver() {
  if (sleeping_)
    wakeSleeper();
  else if (!driving_)
    changed_.notify_all();
}

bool Engine::wait(const Operation& operation, Seconds timeout) {
  if (operation.done()) return true;
  if (timeout <= 0) return false;
  const Seconds until = timeout == kNever ? kNever : clock().now() + timeout;
  return waitFor([&] { return operation.done(); }, until);
}

void Engine::whenDone(Operation& operation, std::function<void()> callback) {
  {
    const Guard guard(*this);
    if (!operation.done()) {
      operation.whenDone(std::move(callback));
      return;
    }
  }
  callback();
}

bool Engine::step() {
  Guard guard(*this);
  const bool did = progressOnce() || workAtLeisure();
  runCallbacks(guard.lock(), false);
  return did;
}

Seconds Engine::nextTimer() {
  const Guard guard(*this);
  Seconds next = transport_->nextTimer();
  for (const auto& [id, channel] : channels_) next = std::min(next, channel->nextDeadline());
  return next;
}

void Engine::shareHostWith(int ranks) {
  const Guard guard(*this);
  mostRanksHere_ = std::max(mostRanksHere_, ranks);
}

bool Engine::progressOnce(bool withTransport) {
  bool did = withTransport && transport_->progress();
  const Seconds now = lookedAt_ = askTime();
  if (withTransport) lastProgress_ = now;
  for (const auto& [id, channel] : channels_) {
    const Channel::Moment moment(*channel, now);
    if (channel->nextDeadline() <= now) channel->checkDeadlines(now);
    did = channel->advance() || did;
    if (!channel->hasCallbacks()) continue;
    for (auto& callback : channel->takeCallbacks()) callbacks_.push_back(std::move(callback));
  }
  return did;
}

bool Engine::workAtLeisure() {
  return std::any_of(channels_.begin(), channels_.end(),
                     [](const auto& entry) { return entry.second->advanceAtLeisure(); });
}

// Lets threads that want the lock have it: a mutex alone may hand it back to the one that drives.
void Engine::giveWay(std::unique_lock<std::mutex>& lock) {
  while (wanting_.load(std::memory_order_relaxed) > 0) {
    lock.unlock();
    sched_yield();
    lock.lock();
  }
}

template <typename Predicate>
bool Engine::waitFor(const Predicate& over, Seconds until) {
  until = std::min(until, kFar);
  Guard guard(*this);
  auto& lock = guard.lock();
  ++waiters_;
  while (!over()) {
    if (driving_) {
      if (clock().now() >= until) break;
      changed_.wait_for(lock, secondsUntil(until, clock()));
      continue;
    }
    driving_ = true;
    callersDrive_ = true;
    const bool mine = drive(lock, true, [&] {
      if (over()) return kNever;
      return until;
    });
    if (!mine) continue;
    driving_ = false;
    changed_.notify_all();
    if (!over() && clock().now() >= until) break;
  }
  const bool isLast = --waiters_ == 0;
  if (isLast && restsLong_ && hasCalls()) callThread();
  return over();
}

// `over` gives the time until which to drive, or kNever when it is time to stop.
template <typename Predicate>
bool Engine::drive(std::unique_lock<std::mutex>& lock, bool asWaiter, const Predicate& over) {
  Seconds idleSince = kNever;
  bool hasSlept = false;
  WaitingPlace place;
  const bool spins = mostRanksHere_ > 0 && mostRanksHere_ <= coresHere();
  for (unsigned turn = 1;; ++turn) {
    // Asked first after every moment without the lock: whoever drives now may be asleep, and would
    // not learn of what was completed here.
    Seconds until = over();
    if (until == kNever) return true;
    const bool onBoard = onBoardAlone() != nullptr;
    const bool did = progressOnce(!onBoard || turn % kBoardTurns == 0);
    if (did && waiters_ > 1) changed_.notify_all();
    if (!runCallbacks(lock, asWaiter)) return false;
    giveWay(lock);
    until = over();
    if (until == kNever) return true;
    if (did) {
      if (idleSince != kNever) {
        const bool early = lookedAt_ - idleSince <= spin_;
        spin_ = early ? std::min(2 * spin_, kLongestSpin) : std::max(spin_ / 2, kShortestSpin);
      }
      idleSince = kNever;
      hasSlept = false;
      continue;
    }
    const Seconds now = lookedAt_;
    if (now >= until) return true;
    if (idleSince == kNever) idleSince = now;
    const Seconds idle = now - idleSince;
    // Not while others wait for this core. The time it takes is not spent waiting.
    if (spins && workAtLeisure()) {
      idleSince = kNever;
      continue;
    }
    if (spins && idle < spin_) {
      if (const Channel* const alone = onBoardAlone()) lookOften(*alone);
      continue;
    }
    const Seconds yields = !spins                 ? (onBoard ? kYieldOnBoard : kYield)
                           : onBoard && !hasSlept ? kYieldApart
                                                  : kYield + spin_;
    if (idle < yields) {
      // Where ranks do not exceed cores, another one here is seen while both wait: each time. Else
      // it is a matter of numbers, and one look does for a while.
      const Channel* const alone = spins || now >= mayStepAside_ ? onBoardAlone() : nullptr;
      const bool steps = alone != nullptr && place.isCrowded(alone->sharedBoard(), coresHere()) &&
                         now >= mayStepAside_;
      if (steps || (alone != nullptr && !spins)) mayStepAside_ = now + kApart;
      lock.unlock();
      if (steps)
        place.stepAside();
      else
        sched_yield();
      lock.lock();
      continue;
    }
    place.leave();
    if (!workAtLeisure()) block(lock, until);
    hasSlept = true;
    idleSince = kNever;
    turn = kBoardTurns - 1;
  }
}

// Sees what comes through the board sooner than a whole turn would. For about half a microsecond.
void Engine::lookOften(const Channel& channel) const {
  constexpr int kLooks = 16;
  for (int i = 0; i < kLooks && !channel.hasNews(); ++i) {
    if (wanting_.load(std::memory_order_relaxed) > 0) return;
    pauseCore();
  }
}

void Engine::block(std::unique_lock<std::mutex>& lock, Seconds until) {
  if (!callbacks_.empty()) return;
  if (sleeping_) {
    // Somebody else sleeps: end it, then take the place.
    wakeSleeper();
    changed_.wait_for(lock, secondsUntil(std::min(until, clock().now() + 0.01), clock()));
    return;
  }
  Seconds wakeAt = std::min(until, transport_->nextTimer());
  for (const auto& [id, channel] : channels_) wakeAt = std::min(wakeAt, channel->nextDeadline());
  if (wakeAt <= clock().now()) return;
  Channel* const onBoard = onBoardAlone();
  for (const auto& [id, channel] : channels_) {
    if (!channel->prepareSleep(channel.get() == onBoard)) return endSleep();
  }
  if (onBoard == nullptr && !transport_->arm()) {
    endSleep();
    lock.unlock();
    sched_yield();
    lock.lock();
    return;
  }
  sleeping_ = true;
  if (onBoard != nullptr) sleepsOnBoard_ = onBoard->shared_from_this();
  const Seconds longest = std::min(kSleepOnBoard, wakeAt - clock().now());
  lock.unlock();
  if (onBoard != nullptr) {
    onBoard->board()->sleep(longest);
  } else {
    transport_->sleep(wakeAt);
  }
  lock.lock();
  sleeping_ = false;
  sleepsOnBoard_.reset();
  endSleep();
  changed_.notify_all();
}

// The only channel with calls under way, if all that they wait for comes through its board.
Channel* Engine::onBoardAlone() const {
  Channel* only = nullptr;
  for (const auto& [id, channel] : channels_) {
    if (channel->idle()) continue;
    if (only != nullptr || !channel->usesBoardAlone()) return nullptr;
    only = channel.get();
  }
  return only;
}

void Engine::endSleep() {
  for (const auto& [id, channel] : channels_) channel->endSleep();
}

void Engine::wakeSleeper() {
  if (sleepsOnBoard_) {
    sleepsOnBoard_->board()->endSleepOf(sleepsOnBoard_->rank());
  } else {
    transport_->wake();
  }
}

bool Engine::hasCalls() const {
  return std::any_of(channels_.begin(), channels_.end(),
                     [](const auto& one) { return one.second->operationsUnderWay() > 0; });
}

// False when it was called before the time was over.
bool Engine::rest(Seconds pause) {
  timespec time{};
  time.tv_nsec = static_cast<long>(pause * 1e9);
  syscall(SYS_futex, &isCalled_, FUTEX_WAIT_PRIVATE, 0, &time, nullptr, 0);
  return isCalled_.exchange(0) == 0;
}

void Engine::callThread() {
  isCalled_.store(1);
  syscall(SYS_futex, &isCalled_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void Engine::threadMain() {
  const auto self = std::this_thread::get_id();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (leader_ != std::thread::id{}) {
      ++followers_;
      leaderGone_.wait(lock, [&] { return stopping_ || leader_ == std::thread::id{}; });
      --followers_;
      continue;
    }
    leader_ = self;
    lead(lock);
    if (leader_ == self)
      leader_ = {};
    else
      --threadsAway_;
  }
  leaderGone_.notify_all();
}

// Until it stops, or a callback that may block has this thread leave the lead to another.
void Engine::lead(std::unique_lock<std::mutex>& lock) {
  const auto self = std::this_thread::get_id();
  std::uint64_t seen = calls_;
  const auto others = [&] { return waiters_ > 0 || (callersDrive_ && calls_ != seen); };
  const auto leads = [&] { return !stopping_ && leader_ == self; };
  while (leads()) {
    if (!others()) {
      drive(lock, false, [&] { return !leads() || others() ? kNever : kFar; });
      continue;
    }
    lock.unlock();
    for (Seconds pause = kGrace; others();) {
      restsLong_ = pause > kGrace;
      const bool more = calls_ != seen;
      seen = calls_;
      if (!rest(pause)) break;
      if (waiters_ == 0 && lock.try_lock()) {
        if (waiters_ == 0 && hasCalls()) callersDrive_ = false;
        lock.unlock();
      }
      pause = more || calls_ != seen ? kGrace : std::min(2 * pause, kLongestRest);
    }
    restsLong_ = false;
    lock.lock();
  }
}

}  // namespace byway
