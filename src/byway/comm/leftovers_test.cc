// SPDX-License-Identifier: BSD-3-Clause
// What processes leave behind that are killed at any moment, also while they start: nothing.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "byway/comm/communicator.h"

namespace byway {
namespace {

using Names = std::set<std::string>;

void addLines(Names& names, const std::string& file, std::size_t fields) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);  // the head
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string key = file, word;
    for (std::size_t i = 0; i < fields && words >> word; ++i) key += " " + word;
    names.insert(key);
  }
}

// Shared memory, semaphores and queues of the host.
Names present() {
  Names names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    names.insert(entry.path().string());
  }
  for (const char* kind : {"shm", "sem", "msg"}) {
    addLines(names, std::string("/proc/sysvipc/") + kind, 2);  // key and id
  }
  return names;
}

// Shared memory whose maker lives: another process of the host has it in use.
Names inUse() {
  Names names;
  std::ifstream in("/proc/sysvipc/shm");
  std::string line;
  std::getline(in, line);  // the head
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string key, id, permissions, size;
    pid_t maker = 0;
    words >> key >> id >> permissions >> size >> maker;
    if (maker > 0 && kill(maker, 0) == 0) names.insert("/proc/sysvipc/shm " + key + " " + id);
  }
  return names;
}

// What is there now, was not before, and nobody has. Other processes of the host may make such
// things meanwhile: those vanish again, while what was left behind stays.
Names leftSince(const Names& before) {
  Names left;
  for (int i = 0; i < 50; ++i) {
    left.clear();
    const Names after = present();
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                        std::inserter(left, left.end()));
    for (const std::string& name : inUse()) left.erase(name);
    if (left.empty()) break;
    usleep(100000);
  }
  return left;
}

[[noreturn]] void rankBody(int self, int ranks, const std::string& folder) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setenv("TMPDIR", (folder + "/tmp").c_str(), 1);
  try {
    FileStore store(folder + "/store");
    std::vector<int> all;
    for (int r = 0; r < ranks; ++r) all.push_back(r);
    const auto comm = Communicator::create(Endpoint::process(Pace{}), store, "left", all, self);
    std::vector<float> data(100000, 1.0F);
    const Region region(data.data(), data.size() * sizeof(float));
    for (;;) comm->allReduce(region, region, data.size(), DType::Float32).wait();
  } catch (const Error&) {
  }
  for (;;) pause();
}

// Kills `kills` processes in all, in random subsets at random moments.
void killAndCompare(int kills, std::uint64_t seed) {
  constexpr int kRanks = 8;
  std::mt19937_64 random(seed);
  std::string folder = (std::filesystem::temp_directory_path() / "byway-test-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const Names before = present();
  for (int done = 0; done < kills;) {
    const std::string job = folder + "/" + std::to_string(done);
    std::filesystem::create_directories(job + "/tmp");
    std::vector<pid_t> pids;
    for (int r = 0; r < kRanks; ++r) {
      pids.push_back(fork());
      if (pids.back() == 0) rankBody(r, kRanks, job);
    }
    std::shuffle(pids.begin(), pids.end(), random);
    while (!pids.empty()) {
      usleep(static_cast<useconds_t>(random() % 150000));
      const std::size_t subset = 1 + random() % pids.size();
      for (std::size_t i = 0; i < subset; ++i) kill(pids[pids.size() - 1 - i], SIGKILL);
      for (std::size_t i = 0; i < subset; ++i) {
        waitpid(pids.back(), nullptr, 0);
        pids.pop_back();
        ++done;
      }
    }
    EXPECT_TRUE(std::filesystem::is_empty(job + "/tmp"));
  }
  EXPECT_EQ(leftSince(before), Names{});
  std::filesystem::remove_all(folder);
}

TEST(Leftovers, NoneOfKilledProcesses) { killAndCompare(16, 1); }
TEST(FullLeftovers, NoneOfAHundredKilledProcesses) { killAndCompare(100, 2); }

}  // namespace
}  // namespace byway
