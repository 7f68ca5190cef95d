// SPDX-License-Identifier: BSD-3-Clause
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include <gtest/gtest.h>

#include "byway/comm/communicator.h"
#include "byway/comm/processes_test_util.h"
#include "byway/comm/random_call_test_util.h"
#include "byway/comm/rendezvous.h"
#include "byway/executor/engine.h"
#include "byway/transport/ucx/sanitizer_test_util.h"

namespace byway {
namespace {

std::string resultFile(const std::string& folder, int rank) {
  return folder + "/result-of-rank-" + std::to_string(rank);
}

// Never returns: no destructor or exit handler of the parent's may run in the child.
[[noreturn]] void child(int rank, const std::string& folder,
                        const std::function<void(int, const std::string&)>& fn) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string result;
  try {
    fn(rank, folder);
  } catch (const std::exception& e) {
    result = e.what();
  }
  if (result.empty() && testing::Test::HasFailure()) result = "an expectation failed, see above";
  std::ofstream(resultFile(folder, rank)) << result << '\n';
  std::fflush(nullptr);
  _exit(0);
}

}  // namespace

std::vector<std::string> runProcesses(int n, double seconds,
                                      const std::function<void(int, const std::string&)>& fn) {
  std::string folder = (std::filesystem::temp_directory_path() / "byway-test-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return {"no temporary folder"};
  std::vector<pid_t> children;
  for (int r = 0; r < n; ++r) {
    const pid_t pid = fork();
    if (pid == 0) child(r, folder, fn);
    children.push_back(pid);
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::vector<std::string> results(static_cast<std::size_t>(n));
  for (int r = 0; r < n; ++r) {
    int status = 0;
    pid_t over = 0;
    while ((over = waitpid(children[static_cast<std::size_t>(r)], &status, WNOHANG)) == 0 &&
           std::chrono::steady_clock::now() < until) {
      usleep(2000);
    }
    std::string& result = results[static_cast<std::size_t>(r)];
    if (over == 0) {
      kill(children[static_cast<std::size_t>(r)], SIGKILL);
      waitpid(children[static_cast<std::size_t>(r)], &status, 0);
      result = "was not over in time and was killed";
      continue;
    }
    std::ifstream in(resultFile(folder, r));
    if (!in)
      result = "ended with status " + std::to_string(status);
    else
      std::getline(in, result);
  }
  std::filesystem::remove_all(folder);
  return results;
}

namespace {

// One rank of a sample of random calls over UCX, compared with the interpreter.
void sampleOverUcx(int n, int rank, const std::string& folder, int calls) {
  FileStore store(folder + "/store");
  const auto endpoint = Endpoint::process(Pace{});
  Engine& engine = *endpoint->engine();
  const Address address = engine.address();
  std::vector<int> ranks;
  for (int r = 0; r < n; ++r) ranks.push_back(r);
  const Meeting meeting =
      meet(store, "sample", ranks, rank,
           {reinterpret_cast<const char*>(address.data()), address.size()}, {}, 30);
  ChannelOptions options;
  options.id = meeting.id;
  options.rank = rank;
  for (const std::string& text : meeting.addresses) {
    options.peers.push_back(
        engine.connect({reinterpret_cast<const std::byte*>(text.data()), text.size()}));
  }
  Channel& channel = engine.open(options);
  std::mt19937_64 random(4711 + static_cast<std::uint64_t>(n));  // the same on all ranks
  for (int done = 0; done < calls;) {
    RandomCall call = drawCall(random, n % 2);
    if (call.ranks != n) continue;
    auto built = drawSchedule(random, call);
    if (!built) continue;
    const auto schedule = verify(std::move(*built));
    drawData(random, *schedule, call);
    if (done % 10 == 0) {  // beyond the eager limit
      call.blockCounts.assign(call.blockCounts.size(), 20000 + static_cast<std::uint64_t>(done));
      drawDataOf(random, *schedule, call);
    }
    const auto interpreted = interpretCall(*schedule, call);
    executeRank(random, engine, channel, schedule, call, interpreted);
    if (testing::Test::HasFailure()) throw std::runtime_error(call.describe());
    ++done;
  }
  engine.close(channel, 10);
}

class OverUcx : public testing::TestWithParam<int> {};

TEST_P(OverUcx, SampleEqualsTheInterpreter) {
  if (const char* why = notWithSanitizers()) GTEST_SKIP() << why;
  const int n = GetParam();
  const auto results = runProcesses(
      n, 100, [n](int rank, const std::string& folder) { sampleOverUcx(n, rank, folder, 120); });
  for (std::size_t r = 0; r < results.size(); ++r) EXPECT_EQ(results[r], "") << "rank " << r;
}

INSTANTIATE_TEST_SUITE_P(Ranks, OverUcx, testing::Values(2, 3, 5, 8));

}  // namespace
}  // namespace byway
