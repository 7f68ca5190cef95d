// SPDX-License-Identifier: BSD-3-Clause
// The collectives that were recorded and are still needed. The lazy graph holds only their sequence
// numbers, which are known when it runs, so that equal steps have equal graphs.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "byway/torch/lazy/recorded_call.h"

namespace byway::pytorch::lazy {

// A call is made once, however often the graph that holds it is evaluated: later evaluations get
// what the first one left.
class Record {
 public:
  Record(std::int64_t sequence, RecordedCall call, bool startsOnly)
      : sequence_(sequence), call_(std::move(call)), startsOnly_(startsOnly) {}

  std::int64_t sequence() const { return sequence_; }
  const RecordedCall& call() const { return call_; }
  // The call is begun by one node of the graph and waited for by another.
  bool startsOnly() const { return startsOnly_; }
  bool hasRun() const { return hasRun_; }
  bool isUnderWay() const;
  bool hasFinished() const { return finished_; }

  // Makes the call; waits for it too unless it only starts. Once.
  void run(Tensors inputs);
  // Waits for what run() started; once.
  void finish();
  // For the graph, every time the same ones: its values are not written, and a call that changes a
  // tensor gets a copy of what others hold, too.
  const Tensors& results() const { return result_.outputs; }

 private:
  const std::int64_t sequence_;
  const RecordedCall call_;
  const bool startsOnly_;
  std::atomic<bool> hasRun_ = false;
  std::atomic<bool> finished_ = false;
  std::exception_ptr error_;
  RecordedCall::Result result_;
};

struct Statistics {
  std::int64_t recorded = 0, executed = 0, replayed = 0, kept = 0, pending = 0;
};

class RecordTable {
 public:
  static RecordTable& instance();

  std::shared_ptr<Record> add(RecordedCall call, bool startsOnly);
  // Of a graph that is being run.
  std::shared_ptr<Record> running(std::int64_t sequence);
  bool hasFinished(std::int64_t sequence);
  // No node of the lazy graph holds it any more.
  void release(std::int64_t sequence);
  std::int64_t nextSequence() const { return next_; }
  std::int64_t pending() const { return pending_; }
  void countExecuted(const Record& record);
  void countReplay() { ++replayed_; }
  Statistics statistics();
  // Names of what was executed, in order, since the last call; nothing unless logging is on.
  std::vector<std::string> takeLog();
  void setLogging(bool on) { logging_ = on; }

  // The first error of a recorded call; calls to come are refused until reset().
  void fail(const Record& record, const std::exception_ptr& error);
  std::exception_ptr failure();
  // Throws what failed before, with the way out.
  void checkUsable();
  void reset();

 private:
  void dropReleased(std::int64_t running);

  std::mutex mutex_;
  std::map<std::int64_t, std::shared_ptr<Record>> records_;
  // Released while a graph that was scheduled earlier may still run them, by the number that was
  // next then: once a later record runs, that graph is over.
  std::multimap<std::int64_t, std::int64_t> released_;
  std::atomic<std::int64_t> next_ = 1, pending_ = 0, executed_ = 0, replayed_ = 0;
  std::atomic<bool> logging_ = false, failed_ = false;
  std::vector<std::string> log_;
  std::exception_ptr failure_;
  std::string failureText_;
};

// While the graph makes a recorded call on this thread: what that calls is not a new call.
class ReplayScope {
 public:
  ReplayScope();
  ~ReplayScope();
  ReplayScope(const ReplayScope&) = delete;
  ReplayScope& operator=(const ReplayScope&) = delete;
  static bool active();
};

}  // namespace byway::pytorch::lazy
