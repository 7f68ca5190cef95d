// SPDX-License-Identifier: BSD-3-Clause
// Faults among ranks that are processes over UCX: everybody learns of them in time and by name, and
// the survivors go on with a new communicator in the same store. A job runs a list of cells on the
// processes that are left; the parent kills, stops and wakes them.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "byway/comm/fault_cell_test_util.h"
#include "byway/transport/ucx/sanitizer_test_util.h"

namespace byway::faults {
namespace {

constexpr int kRanks = 8;
constexpr int kMostCells = 64;
constexpr int kFaultCall = 3;            // the calls before it go well
constexpr Seconds kPatience = 15;        // of ranks
constexpr Seconds kParentPatience = 20;  // so that ranks say first what they wait for
constexpr Seconds kDeadline = 0.6;       // where a deadline is to find the fault
constexpr Seconds kLate = 0.2;
// What design and documents promise, beyond the deadline and after a death.
constexpr Seconds kAfterDeadline = 1.0;
constexpr Seconds kAfterDeath = 2.5;
// The first message tells; the transport lets go of buffers within another second.
constexpr Seconds kAfterMessage = 2.0;

Seconds now() { return SteadyClock::instance().now(); }

// What parent and ranks share.
struct Shared {
  struct OfCell {
    std::atomic<int> calls[kRanks];   // done well, by process
    std::atomic<int> ready[kRanks];   // the victim: may be killed
    std::atomic<int> failed[kRanks];  // met the error, or needs none
    std::atomic<double> struckAt;     // when the victim was killed
    std::atomic<double> tookLongest;
    char verdict[kRanks][512];
  };
  OfCell cells[kMostCells];
  std::atomic<pid_t> children[kRanks];  // forked by victims
  std::atomic<int> done[kRanks];
};

struct Mapping {
  Mapping() {
    void* at =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) std::abort();
    shared = new (at) Shared{};
  }
  ~Mapping() { munmap(shared, sizeof(Shared)); }
  Shared* shared;
};

ErrorCode expectedCode(Fault fault) {
  switch (fault) {
    case Fault::Killed:
    case Fault::ForkedAndKilled:
      return ErrorCode::PeerLost;
    case Fault::Stopped:
    case Fault::NeverCalls:
    case Fault::Late:
      return ErrorCode::Timeout;
    case Fault::OtherCount:
    case Fault::OtherDType:
    case Fault::OtherOp:
    case Fault::OtherCollective:
      return ErrorCode::Mismatch;
    case Fault::Aborts:
      return ErrorCode::Aborted;
  }
  return ErrorCode::Internal;
}

// One rank in one cell.
class CellRank {
 public:
  CellRank(Communicator& comm, const Cell& cell, Shared::OfCell& shared, Shared& all, int process)
      : comm_(comm),
        cell_(cell),
        shared_(shared),
        all_(all),
        process_(process),
        isVictim_(comm.rank() == cell.victim),
        calls_(comm, cell) {}

  void run() {
    if (cell_.isRelayed && comm_.size() == kRanks && !calls_.isRelayed()) say("is not relayed");
    for (int call = 0; call < 100000; ++call) {
      if (cell_.fault == Fault::Late && call == kFaultCall + 3) {
        shared_.failed[process_] = 1;
        return;
      }
      if (isVictim_ && call == kFaultCall) strike();
      const Seconds start = now();
      try {
        std::jthread aborter;
        Work work = calls_.start(call, isVictim_ && call == kFaultCall, timeout());
        if (isVictim_ && cell_.fault == Fault::Aborts && call == kFaultCall) {
          aborter = std::jthread([this] { comm_.abort("the test says so"); });
        }
        work.wait();
      } catch (const Error& error) {
        const Seconds end = now();
        shared_.failed[process_] = 1;
        return judge(error, start, end);
      }
      // A rank that is not told before it makes one call more may see it succeed at worst.
      const std::string wrong = calls_.check(call);
      if (!wrong.empty()) return say(wrong);
      shared_.calls[process_] = call + 1;
    }
    say("no error came");
  }

 private:
  Seconds timeout() const {
    return cell_.fault == Fault::Stopped || cell_.fault == Fault::NeverCalls ? kDeadline
                                                                             : kPatience;
  }

  // What the victim does before its call.
  void strike() {
    if (cell_.fault == Fault::ForkedAndKilled) {
      const pid_t child = fork();
      if (child == 0) {
        for (;;) pause();
      }
      all_.children[process_] = child;
    }
    shared_.ready[process_] = 1;
    if (cell_.fault == Fault::Late)
      std::this_thread::sleep_for(std::chrono::duration<double>(kLate));
    if (cell_.fault != Fault::NeverCalls) return;
    const Seconds until = now() + kPatience;
    const auto told = [this] {
      int count = 0;
      for (const auto& failed : shared_.failed) count += failed;
      return count >= comm_.size() - 1;
    };
    while (!told() && now() < until) usleep(1000);
  }

  void judge(const Error& error, Seconds start, Seconds end) {
    const std::string what = error.what();
    const ErrorCode code = expectedCode(cell_.fault);
    const bool isReport =
        error.code() == ErrorCode::Broken && what.find(toString(code)) != std::string::npos;
    if (error.code() != code && !isReport) say(fmt::format("{}: {}", toString(error.code()), what));
    const std::string name = "rank " + std::to_string(cell_.victim);
    const bool named = what.find(name) != std::string::npos || (isVictim_ && !cell_.kills());
    if (!named) say("does not name " + name + ": " + what);
    Seconds took = end - start;
    Seconds allowed = timeout() + kAfterDeadline;
    if (cell_.kills()) {
      took = end - shared_.struckAt;
      allowed = kAfterDeath;
    } else if (cell_.fault != Fault::Stopped && cell_.fault != Fault::NeverCalls) {
      allowed = kAfterMessage;
    } else if (isVictim_) {
      took = 0;  // it was stopped itself, or had not called
    }
    if (took > allowed) say(fmt::format("took {:.3f} s: {}", took, what));
    if (took > shared_.tookLongest) shared_.tookLongest = took;
    try {
      const Work work = comm_.barrier();
      say("a call after the failure was accepted");
    } catch (const Error& later) {
      if (later.code() != ErrorCode::Broken) say(std::string("then: ") + later.what());
    }
  }

  void say(const std::string& what) {
    char* verdict = shared_.verdict[process_];
    const std::size_t used = std::strlen(verdict);
    std::snprintf(verdict + used, sizeof shared_.verdict[0] - used, "[%s] ", what.c_str());
  }

  Communicator& comm_;
  const Cell& cell_;
  Shared::OfCell& shared_;
  Shared& all_;
  int process_;
  bool isVictim_;
  CellCalls calls_;
};

// The processes that take part in cell `index`, by rank.
std::vector<int> processesOf(const std::vector<Cell>& cells, std::size_t index) {
  std::vector<int> left;
  for (int r = 0; r < kRanks; ++r) left.push_back(r);
  for (std::size_t i = 0; i < index; ++i) {
    if (cells[i].kills()) left.erase(left.begin() + cells[i].victim);
  }
  return left;
}

void runCells(int self, const std::string& folder, const std::vector<Cell>& cells, Shared& shared) {
  FileStore store(folder + "/store");
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::vector<int> ranks = processesOf(cells, i);
    if (std::find(ranks.begin(), ranks.end(), self) == ranks.end()) return;
    Shared::OfCell& cell = shared.cells[i];
    try {
      CommunicatorOptions options;
      options.timeout = kPatience;
      options.topology = cells[i].isRelayed ? fmt::format("mesh:{}@100M,10", ranks.size()) : "host";
      // The same name for every communicator.
      const auto comm =
          Communicator::create(Endpoint::process(Pace{}), store, "faults", ranks, self, options);
      CellRank(*comm, cells[i], cell, shared, self).run();
    } catch (const std::exception& e) {
      std::snprintf(cell.verdict[self], sizeof cell.verdict[self], "threw %s", e.what());
      return;
    }
  }
}

class Job {
 public:
  explicit Job(std::vector<Cell> cells) : cells_(std::move(cells)) {
    folder_ = (std::filesystem::temp_directory_path() / "byway-test-XXXXXX").string();
    if (mkdtemp(folder_.data()) == nullptr) std::abort();
    for (int r = 0; r < kRanks; ++r) {
      const pid_t pid = fork();
      if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        runCells(r, folder_, cells_, shared());
        shared().done[r] = 1;
        for (;;) pause();  // the death of one that is through must not be a fault for the others
      }
      pids_.push_back(pid);
    }
  }
  ~Job() {
    for (const pid_t pid : pids_) kill(pid, SIGKILL);
    for (const pid_t pid : pids_) waitpid(pid, nullptr, 0);
    for (const auto& child : shared().children) {
      if (child > 0) kill(child, SIGKILL);
    }
    std::filesystem::remove_all(folder_);
  }

  // Does the parent's part and judges.
  void run() {
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      SCOPED_TRACE(fmt::format("cell {}: {}", i, cells_[i].describe()));
      runCell(i);
      for (int r = 0; r < kRanks; ++r) {
        const char* verdict = shared().cells[i].verdict[r];
        EXPECT_STREQ(verdict, "") << "process " << r;
      }
      if (testing::Test::HasFailure()) return;
    }
    const std::vector<int> left = processesOf(cells_, cells_.size());
    for (const int r : left) {
      EXPECT_TRUE(await([&] { return shared().done[r] != 0; })) << "process " << r << " hangs";
    }
  }
  Seconds longest(std::size_t index) { return shared().cells[index].tookLongest; }

 private:
  Shared& shared() { return *mapping_.shared; }

  template <typename Condition>
  static bool await(const Condition& condition) {
    const Seconds until = now() + kParentPatience;
    while (!condition()) {
      if (now() > until) return false;
      usleep(200);
    }
    return true;
  }

  void runCell(std::size_t index) {
    const Cell& cell = cells_[index];
    Shared::OfCell& state = shared().cells[index];
    const std::vector<int> processes = processesOf(cells_, index);
    const int victim = processes[static_cast<std::size_t>(cell.victim)];
    const pid_t pid = pids_[static_cast<std::size_t>(victim)];
    const bool strikes = cell.kills() || cell.fault == Fault::Stopped;
    if (strikes) {
      const bool ready = await([&] {
        for (const int p : processes) {
          if (state.calls[p] < kFaultCall || std::strlen(state.verdict[p]) > 0) return false;
        }
        return state.ready[victim] != 0;
      });
      EXPECT_TRUE(ready) << "the ranks do not begin";
      if (!ready) return;
      usleep(cell.delayUs);
      state.struckAt = now();
      ASSERT_EQ(kill(pid, cell.kills() ? SIGKILL : SIGSTOP), 0);
    }
    const auto over = [&](bool alsoVictim) {
      for (const int p : processes) {
        if (p == victim && (cell.kills() || !alsoVictim)) continue;
        if (state.failed[p] == 0 && std::strlen(state.verdict[p]) == 0) return false;
      }
      return true;
    };
    EXPECT_TRUE(await([&] { return over(!strikes); })) << "somebody hangs";
    if (cell.fault == Fault::Stopped) {
      kill(pid, SIGCONT);
      EXPECT_TRUE(await([&] { return over(true); })) << "the victim hangs when it goes on";
    }
  }

  std::vector<Cell> cells_;
  Mapping mapping_;
  std::string folder_;
  std::vector<pid_t> pids_;
};

// A cell that makes sense for `ranks` ranks.
Cell draw(std::mt19937_64& random, Fault fault, int collective, bool isRelayed, int ranks) {
  const auto below = [&](int n) {
    return static_cast<int>(random() % static_cast<std::uint64_t>(n));
  };
  Cell cell;
  cell.fault = fault;
  cell.collective = collective;
  cell.isRelayed = isRelayed && !cell.isBarrier() && ranks > 2;
  cell.members = cell.isRelayed ? (ranks > 4 && below(2) == 1 ? 4 : 2) : ranks;
  cell.count = cell.isRelayed ? 200000 : (below(2) == 0 ? 100 : 30000);
  cell.victim = below(ranks);
  cell.delayUs = static_cast<std::uint32_t>(below(3000));
  const bool reduces = collective == 0 || collective == 2 || collective == 5;
  if (fault == Fault::OtherOp && !reduces) cell.fault = Fault::OtherCollective;
  const bool alike = cell.fault == Fault::OtherCount || cell.fault == Fault::OtherDType;
  if (cell.isBarrier() && alike) cell.fault = Fault::OtherCollective;
  return cell;
}

void runJob(std::vector<Cell> cells) {
  Job job(std::move(cells));
  job.run();
}

class FaultsInProcesses : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* why = notWithSanitizers()) GTEST_SKIP() << why;
  }
};

using FullFaultsInProcesses = FaultsInProcesses;

TEST_F(FaultsInProcesses, EveryKindOnce) {
  std::mt19937_64 random(20261129);
  std::vector<Cell> cells;
  for (int fault = 2; fault < kFaults; ++fault) {
    cells.push_back(
        draw(random, static_cast<Fault>(fault), fault % 3 == 0 ? 2 : 0, fault % 2 == 0, kRanks));
  }
  cells.push_back(draw(random, Fault::Killed, 0, true, kRanks));
  cells.push_back(draw(random, Fault::ForkedAndKilled, 3, false, kRanks - 1));
  runJob(std::move(cells));
}

// Every collective meets three kinds of fault, and all kinds are met about alike.
TEST_F(FaultsInProcesses, EveryCollective) {
  std::mt19937_64 random(5);
  std::vector<Cell> cells;
  for (int c = 0; c < kCollectives; ++c) {
    for (const int k : {0, 3, 5}) {
      const auto fault = static_cast<Fault>(2 + (c + k) % (kFaults - 2));
      cells.push_back(draw(random, fault, c, (c + k) % 2 == 0, kRanks));
    }
  }
  runJob(std::move(cells));
}

// Not only when the second is over that calls get which may yet end well.
TEST_F(FaultsInProcesses, ADeathEndsWhatWaitsForItAtOnce) {
  std::vector<Cell> cells(4);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i].fault = Fault::Killed;
    cells[i].collective = 0;
    cells[i].members = kRanks - static_cast<int>(i);
    cells[i].count = i % 2 == 0 ? 1000 : 30000;
    cells[i].victim = static_cast<int>(i);
    cells[i].delayUs = 3000;
  }
  Job job(cells);
  job.run();
  for (std::size_t i = 0; i < cells.size(); ++i) EXPECT_LT(job.longest(i), 0.8) << "cell " << i;
}

// A member, then a helper, then ranks of what is left, in every `step`th collective.
void killInCollectives(int step) {
  std::mt19937_64 random(6);
  for (int c = 0; c < kCollectives; c += step) {
    std::vector<Cell> cells;
    for (int ranks = kRanks; ranks > 3; --ranks) {
      const bool isRelayed = ranks % 2 == 0;
      const auto fault = ranks % 3 == 0 ? Fault::ForkedAndKilled : Fault::Killed;
      cells.push_back(draw(random, fault, c, isRelayed, ranks));
      if (ranks == kRanks) cells.back().victim = c % 2 == 0 ? 1 : kRanks - 1;
    }
    runJob(std::move(cells));
    if (testing::Test::HasFailure()) return;
  }
}

TEST_F(FaultsInProcesses, KilledInSomeCollectives) { killInCollectives(4); }
TEST_F(FullFaultsInProcesses, KilledInEveryCollective) { killInCollectives(1); }

TEST_F(FullFaultsInProcesses, FiftyRandomRounds) {
  for (int round = 0; round < 50 && !HasFailure(); ++round) {
    SCOPED_TRACE(fmt::format("round {}, which is also its seed", round));
    std::mt19937_64 random(static_cast<std::uint64_t>(round));
    std::vector<Cell> cells;
    for (int ranks = kRanks; ranks > 2 && cells.size() < 16;) {
      const auto pick = [&](int n) {
        return static_cast<int>(random() % static_cast<std::uint64_t>(n));
      };
      const int fault = pick(kFaults);
      const int collective = pick(kCollectives);
      cells.push_back(draw(random, static_cast<Fault>(fault), collective, pick(2) == 0, ranks));
      if (cells.back().kills()) --ranks;
    }
    runJob(std::move(cells));
  }
}

}  // namespace
}  // namespace byway::faults
