// SPDX-License-Identifier: BSD-3-Clause
// Ranks of one host as processes: values, waiting, and more ranks than cores (docs/host.md).
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "byway/comm/communicator.h"
#include "byway/comm/processes_test_util.h"
#include "byway/transport/ucx/sanitizer_test_util.h"

namespace byway {
namespace {

std::unique_ptr<Communicator> created(int n, int rank, const std::string& folder,
                                      CommunicatorOptions options = {}) {
  FileStore store(folder + "/store");
  std::vector<int> ranks(static_cast<std::size_t>(n));
  std::iota(ranks.begin(), ranks.end(), 0);
  options.timeout = 30;
  return Communicator::create(Endpoint::process(Pace{}), store, "host", ranks, rank, options);
}

template <typename T>
Region regionOf(std::vector<T>& v) {
  return {v.data(), v.size() * sizeof(T)};
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpuSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

void allReduce(Communicator& comm, std::vector<double>& values) {
  comm.allReduce(regionOf(values), regionOf(values), values.size(), DType::Float64).wait();
}

void expectSuccess(const std::vector<std::string>& results) {
  for (std::size_t r = 0; r < results.size(); ++r) EXPECT_EQ(results[r], "") << "rank " << r;
}

// Small sums are whole numbers: every order and every way gives the same.
void checkValues(Communicator& comm, std::size_t count, int call) {
  const int n = comm.size();
  const auto value = [&](int rank, std::size_t i) {
    return static_cast<double>((rank + 1) * (call + 1) + static_cast<int>(i % 11));
  };
  std::vector<double> sums(count);
  for (std::size_t i = 0; i < count; ++i) sums[i] = value(comm.rank(), i);
  std::vector<double> own = sums, all(count * static_cast<std::size_t>(n));
  allReduce(comm, sums);
  comm.allGather(regionOf(own), regionOf(all), count, DType::Float64).wait();
  for (std::size_t i = 0; i < count; i += std::max<std::size_t>(1, count / 1000)) {
    double sum = 0;
    for (int r = 0; r < n; ++r) {
      sum += value(r, i);
      ASSERT_EQ(all[static_cast<std::size_t>(r) * count + i], value(r, i)) << count << " " << i;
    }
    ASSERT_EQ(sums[i], sum) << "element " << i << " of " << count << ", call " << call;
  }
}

TEST(HostProcesses, ValuesAtEverySizeMappedAndSent) {
  if (const char* why = notWithSanitizers()) GTEST_SKIP() << why;
  expectSuccess(runProcesses(4, 60, [](int rank, const std::string& folder) {
    for (const bool mapped : {true, false}) {
      CommunicatorOptions options;
      options.mapped = mapped;
      const auto comm = created(4, rank, folder, options);
      int call = 0;
      for (const std::size_t count : {1U, 4U, 5U, 512U, 8192U, 8193U, 20000U, 300001U}) {
        for (int i = 0; i < 6; ++i) checkValues(*comm, count, call++);
      }
    }
  }));
}

TEST(TimedHostProcesses, RanksThatWaitForALateOneUseLittleTime) {
  expectSuccess(runProcesses(4, 60, [](int rank, const std::string& folder) {
    const auto comm = created(4, rank, folder);
    std::vector<double> values(512, 1.0);
    for (int i = 0; i < 10; ++i) allReduce(*comm, values);
    const double start = seconds(), used = cpuSeconds();
    if (rank == 0) std::this_thread::sleep_for(std::chrono::seconds(2));
    allReduce(*comm, values);
    EXPECT_LT(cpuSeconds() - used, 0.1 * (seconds() - start));
  }));
}

// Seconds of a 4 KB allreduce among n ranks: the median of many, as rank 0 saw them.
double smallCall(int n) {
  std::string path = "/tmp/byway-host-test-XXXXXX";
  close(mkstemp(path.data()));
  expectSuccess(runProcesses(n, 60, [&](int rank, const std::string& folder) {
    const auto comm = created(n, rank, folder);
    std::vector<double> values(512, 0.0);
    std::vector<double> times;
    for (int i = 0; i < 600; ++i) {
      const double start = seconds();
      allReduce(*comm, values);
      if (i >= 100) times.push_back(seconds() - start);
    }
    std::sort(times.begin(), times.end());
    if (rank == 0) std::ofstream(path) << times[times.size() / 2];
  }));
  double time = 1e9;
  std::ifstream(path) >> time;
  unlink(path.c_str());
  return time;
}

TEST(TimedHostProcesses, MoreRanksThanCoresAreNoCollapse) {
  const double two = smallCall(2), eight = smallCall(8);
  EXPECT_LE(eight, std::max(10 * two, 150e-6)) << "two ranks: " << two * 1e6 << " us";
}

}  // namespace
}  // namespace byway
