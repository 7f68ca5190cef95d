// SPDX-License-Identifier: BSD-3-Clause
// Drives a transport and all channels on it. One per process; tests make several.
//
// One lock covers everything. A caller that waits takes it and drives the engine itself; the
// progress thread drives only while nobody waits. Whoever drives gives way to those who want the
// lock, and sleeps on the transport's descriptors without it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "byway/executor/channel.h"
#include "byway/executor/control.h"

namespace byway {

struct EngineOptions {
  bool progressThread = true;  // false: the owner calls step()
};

class Engine final : private ArrivalSink {
 public:
  static std::shared_ptr<Engine> make(std::unique_ptr<Transport> transport,
                                      EngineOptions options = {});
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Address address();
  // Throws Error{PeerLost} when its process is known to have ended.
  PeerId connect(std::span<const std::byte> address);

  // Channels live until close(). Throws Error{InvalidArgument} when the id is in use.
  Channel& open(ChannelOptions options);
  // Waits up to `bound` for the calls under way, tells the peers, cancels what is left, and frees
  // the channel. What was submitted and not over fails with Aborted.
  void close(Channel& channel, Seconds bound);
  // Fails everything on the channel with Aborted, here and on the other ranks.
  void abort(Channel& channel, const std::string& why);
  // The same with another error.
  void fail(Channel& channel, const Error& error);

  std::shared_ptr<CollectiveOperation> submit(Channel& channel, OperationRequest&& request);
  // A call that was made before. Within locked(), since the caller finds it under the lock.
  // What it returns is valid until the call is made again.
  const std::shared_ptr<CollectiveOperation>& submitLocked(Channel& channel, RepeatedCall& call,
                                                           CallData&& data);
  void supply(Channel& channel, CollectiveOperation& operation, OperationRequest&& request);
  // Instead of supply(), where all ranks find the same: the call alone fails.
  void reject(Channel& channel, CollectiveOperation& operation, const Error& error);
  std::shared_ptr<Operation> submit(Channel& channel, PointToPointRequest&& request);
  // A call that this rank's caller got wrong: it takes its number, and the other ranks learn that
  // they must not wait for it.
  void refuse(Channel& channel, const Error& error);
  // False when `timeout` ran out first; it may be called again. Any thread, any number of them.
  bool wait(const Operation& operation, Seconds timeout);
  // Calls `callback` once the operation is done, from a thread that drives and outside the lock, or
  // at once if it is done.
  void whenDone(Operation& operation, std::function<void()> callback);
  // For a callback that is about to do what may wait for other callbacks: other threads drive and
  // run those after it. Nothing happens on a thread that runs no callback.
  static void callbackMayBlock();

  // So many ranks of a communicator run on this host. While they do not exceed its cores, a waiter
  // spins before it yields.
  void shareHostWith(int ranks);
  // For owners without a progress thread: does what can be done; true if anything was.
  bool step();
  // When step() has something to do again although nothing arrives.
  Seconds nextTimer();
  const Clock& clock() const { return transport_->clock(); }

  // Whether a peer was lost that had not left in order. Then the transport may have come to harm (a
  // process that is killed while it writes into a queue of UCX can block it for all others), and
  // new communicators are better made on a new engine.
  bool lostAPeer() const { return lostAPeer_.load(std::memory_order_relaxed); }

  // Ends the thread, fails what is under way and closes the transport, all within about two
  // seconds. Calls that come later are refused. Idempotent.
  void shutdown();

  // Runs `fn` under the lock: for reading a channel's figures, and for submitLocked().
  template <typename Fn>
  auto locked(Fn&& fn) {
    const Guard guard(*this);
    return fn();
  }

 private:
  Engine(std::unique_ptr<Transport> transport, EngineOptions options);

  class Guard {
   public:
    explicit Guard(Engine& engine);
    std::unique_lock<std::mutex>& lock() { return lock_; }

   private:
    std::unique_lock<std::mutex> lock_;
  };

  bool dataArrived(const MatchKey& key, const Stamp& stamp) override;
  void controlArrived(PeerId from, std::span<const std::byte> payload) override;
  void peerLost(PeerId peer) override;
  void act(Channel& channel, PeerId from, const ControlMessage& message);
  void answerFor(PeerId asker, const ControlMessage& question, Standing standing);

  template <typename Submit>
  decltype(auto) start(Channel& channel, const Submit& submit);
  Seconds askTime();
  Seconds recentTime();
  bool progressOnce(bool withTransport = true);
  bool workAtLeisure();
  template <typename Predicate>
  bool drive(std::unique_lock<std::mutex>& lock, bool asWaiter, const Predicate& over);
  template <typename Predicate>
  bool waitFor(const Predicate& over, Seconds until);
  void giveWay(std::unique_lock<std::mutex>& lock);
  bool runCallbacks(std::unique_lock<std::mutex>& lock, bool asWaiter);
  void runBatch(std::vector<std::function<void()>> callbacks);
  void leaveToOthers(std::vector<std::function<void()>> callbacks);
  void lookOften(const Channel& channel) const;
  void block(std::unique_lock<std::mutex>& lock, Seconds until);
  Channel* onBoardAlone() const;
  bool hasCalls() const;
  void endSleep();
  void wakeSleeper();
  void alarmDriver();
  void threadMain();
  void lead(std::unique_lock<std::mutex>& lock);
  bool rest(Seconds pause);
  void callThread();
  void checkProcess() const;

  static constexpr std::size_t kMostEarlyMessages = 1024;

  std::unique_ptr<Transport> transport_;
  EngineOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;       // a wait may be over, or the right to drive is free
  std::atomic<int> wanting_{0};           // threads that want the lock
  std::atomic<int> waiters_{0};           // callers in waitFor
  std::atomic<std::uint64_t> calls_{0};   // submitted
  std::atomic<bool> callersDrive_{true};  // those who make calls wait for them here
  int mostRanksHere_ = 0;
  Seconds spin_ = 10e-6;      // how long to spin, while ranks do not exceed cores
  Seconds mayStepAside_ = 0;  // to another core, from then on
  Seconds lookedAt_ = 0;      // when progressOnce() last looked
  Seconds askedAt_ = 0;       // what askTime() said, and cycleCount() then
  std::uint64_t askedCycles_ = 0;
  bool onSteadyClock_;                      // which goes on by itself
  Seconds lastProgress_ = 0;                // of the transport
  bool driving_ = false;                    // one of them drives
  bool sleeping_ = false;                   // somebody is in transport.sleep(), or
  std::shared_ptr<Channel> sleepsOnBoard_;  // in the sleep() of the board of this one
  bool stopping_ = false;
  std::map<std::uint64_t, std::shared_ptr<Channel>> channels_;
  std::set<std::uint64_t> ended_;  // ids are not used again; messages for them may still come
  std::vector<std::pair<PeerId, ControlMessage>> early_;  // for channels that are not open yet
  std::set<PeerId> departed_;  // said goodbye, and are in no channel that was opened since
  std::atomic<bool> lostAPeer_{false};
  std::vector<std::function<void()>> callbacks_;
  unsigned forkGeneration_;
  // One of the threads leads: it drives while no caller does. The others are within callbacks that
  // may block, or wait to lead.
  std::vector<std::thread> threads_;
  std::thread::id leader_;  // no thread's while another is to take over
  std::condition_variable leaderGone_;
  int followers_ = 0;    // threads that wait to lead
  int threadsAway_ = 0;  // threads that left the lead to another, and are within a callback
  // How the leader rests while callers drive.
  std::atomic<std::uint32_t> isCalled_{0};  // a futex
  std::atomic<bool> restsLong_{false};
};

}  // namespace byway
