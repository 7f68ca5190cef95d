// SPDX-License-Identifier: BSD-3-Clause
// For tests: ranks as processes. A rank is this test program started again with a variable that
// names a body; it runs the body instead of tests, so nothing of UCX is inherited by a fork.
#pragma once

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "byway/transport/transport.h"

namespace byway::testing {

constexpr int kMaxRanks = 8;
constexpr const char* kChildVariable = "BYWAY_TRANSPORT_TEST_RANK";

// What parent and ranks share.
struct Shared {
  std::atomic<std::size_t> addressBytes[kMaxRanks];
  std::byte addresses[kMaxRanks][4096];
  std::atomic<int> arrived[64];  // by barrier
  double results[kMaxRanks][kMaxRanks];
  double starved[kMaxRanks];
  std::atomic<int> flags[kMaxRanks];
};

// One rank, inside its process.
struct Rank {
  int self = 0, size = 0;
  std::string argument;
  Shared* shared = nullptr;
  Transport* transport = nullptr;
  std::vector<PeerId> peers;
  int barriers = 0;

  // Publishes the address and connects to everybody.
  void connect(Transport& own) {
    transport = &own;
    const Address address = own.address();
    std::memcpy(shared->addresses[self], address.data(), address.size());
    shared->addressBytes[self].store(address.size());
    for (int r = 0; r < size; ++r) {
      drive([&] { return shared->addressBytes[r].load() > 0; });
      peers.push_back(own.connect({shared->addresses[r], shared->addressBytes[r].load()}));
    }
  }
  // As an engine would, but looking at least every millisecond for what no descriptor announces.
  template <class Condition>
  void drive(Condition isDone) {
    const Seconds deadline = SteadyClock::instance().now() + 50;
    while (!isDone()) {
      if (transport->progress()) continue;
      const Seconds now = SteadyClock::instance().now();
      if (now > deadline) {
        std::fprintf(stderr, "rank %d: nothing happens any more\n", self);
        std::_Exit(3);
      }
      if (transport->arm()) {
        transport->sleep(std::min(transport->nextTimer(), now + 0.001));
      } else {
        sched_yield();
      }
    }
  }
  void barrier() {
    std::atomic<int>& arrived = shared->arrived[barriers++];
    arrived.fetch_add(1);
    drive([&] { return arrived.load() >= size; });
  }
};

using Body = std::function<void(Rank&)>;

inline void require(bool condition, const Rank& rank, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "rank %d: not true: %s\n", rank.self, what);
  std::_Exit(2);
}
#define BYWAY_REQUIRE(rank, condition) ::byway::testing::require(condition, rank, #condition)

// Called before main(): does not return in a rank that has one of these bodies.
inline bool runAsRank(const std::map<std::string, Body>& bodies) {
  const char* text = std::getenv(kChildVariable);
  if (text == nullptr) return false;
  Rank rank;
  int memory = -1;
  std::array<char, 64> body{}, argument{};
  std::sscanf(text, "%d %d %d %63s %63s", &rank.self, &rank.size, &memory, body.data(),
              argument.data());
  rank.argument = argument.data();
  if (bodies.count(body.data()) == 0) return false;
  void* shared = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (shared == MAP_FAILED) std::_Exit(4);
  rank.shared = static_cast<Shared*>(shared);
  bodies.at(body.data())(rank);
  std::exit(0);
}

// The ranks of one test, in the parent.
class Processes {
 public:
  Processes(int size, const std::string& body, const std::string& argument = "-") {
    memory_ = memfd_create("byway-test", 0);
    if (ftruncate(memory_, sizeof(Shared)) != 0) std::abort();
    shared_ = static_cast<Shared*>(
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0));
    for (int r = 0; r < size; ++r) {
      std::ostringstream text;
      text << kChildVariable << '=' << r << ' ' << size << ' ' << memory_ << ' ' << body << ' '
           << argument;
      pids_.push_back(start(text.str()));
    }
  }
  ~Processes() {
    for (std::size_t r = 0; r < pids_.size(); ++r) kill(static_cast<int>(r));
    munmap(shared_, sizeof(Shared));
    close(memory_);
  }
  Shared& shared() { return *shared_; }

  void kill(int rank) {
    pid_t& pid = pids_[static_cast<std::size_t>(rank)];
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    pid = -1;
  }
  void waitStopped(int rank) { waitpid(pids_[static_cast<std::size_t>(rank)], nullptr, WUNTRACED); }
  // The rank's exit status, or -1 after `patience` seconds or a signal.
  int wait(int rank, Seconds patience = 60) {
    pid_t& pid = pids_[static_cast<std::size_t>(rank)];
    const Seconds deadline = SteadyClock::instance().now() + patience;
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
      if (SteadyClock::instance().now() > deadline) return -1;
      usleep(2000);
    }
    pid = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  static pid_t start(const std::string& setting) {
    std::vector<char*> environment;
    for (char** e = environ; *e != nullptr; ++e) environment.push_back(*e);
    std::string own = setting;
    environment.push_back(own.data());
    environment.push_back(nullptr);
    std::string program = "/proc/self/exe";
    char* arguments[] = {program.data(), nullptr};
    const pid_t pid = fork();
    if (pid == 0) {
      execve(program.c_str(), arguments, environment.data());
      _exit(127);
    }
    return pid;
  }

  int memory_ = -1;
  Shared* shared_ = nullptr;
  std::vector<pid_t> pids_;
};

}  // namespace byway::testing
