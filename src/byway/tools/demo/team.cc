// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/demo/team.h"

#include <cerrno>
#include <cmath>
#include <ctime>
#include <numeric>

#include <fmt/format.h>

namespace byway::tools {
namespace {

constexpr Seconds kLead = 0.01;  // from the agreement to the start; a message takes far less
constexpr Seconds kTimeout = 60;

std::vector<int> firstRanks(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

void sleepUntil(Seconds when) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(std::floor(when));
  time.tv_nsec = static_cast<long>((when - std::floor(when)) * 1e9);
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

}  // namespace

std::string topologyFile(const std::string& folder, int ranks) {
  return fmt::format("{}/topology-{}.json", folder, ranks);
}

Team::Team(const DemoSettings& settings, const std::vector<int>& sizes,
           const std::string& topologyFolder) {
  const LaunchInfo info = launchInfo();
  rank_ = info.rank;
  size_ = info.size;
  FileStore store(info.storeFolder);
  CommunicatorOptions options;
  options.timeout = kTimeout;
  options.topology = "host";
  control_ = Communicator::create(Endpoint::process(Pace{}), store, "control", firstRanks(size_),
                                  rank_, options);
  const auto paced = Endpoint::process(Pace{settings.rate, settings.latency});
  for (const int n : sizes) {
    if (rank_ >= n) continue;
    options.topology = topologyFile(topologyFolder, n);
    options.route = "direct";
    direct_[n] = Communicator::create(paced, store, fmt::format("direct-{}", n), firstRanks(n),
                                      rank_, options);
    options.route = "";
    chosen_[n] = Communicator::create(paced, store, fmt::format("chosen-{}", n), firstRanks(n),
                                      rank_, options);
  }
  warmUp();
}

Communicator* Team::communicator(int ranks, Way way) {
  auto& all = way == Way::Direct ? direct_ : chosen_;
  const auto found = all.find(ranks);
  return found == all.end() ? nullptr : found->second.get();
}

// Every pair of ranks exchanges one message that is large enough to be fetched.
void Team::warmUp() {
  constexpr std::uint64_t kSegment = 1 << 14;
  std::vector<std::byte> from(kSegment * static_cast<std::uint64_t>(size_)), to(from.size());
  for (auto* all : {&direct_, &chosen_}) {
    for (auto& [n, communicator] : *all) {
      const std::uint64_t bytes = kSegment * static_cast<std::uint64_t>(n);
      communicator
          ->allToAll(readOnly(from.data(), bytes), Region(to.data(), bytes), kSegment, DType::UInt8)
          .wait();
    }
  }
  barrier();
}

void Team::barrier() { control_->barrier().wait(); }

Seconds Team::agreeOnStart() {
  barrier();
  Seconds start = SteadyClock::instance().now() + kLead;
  control_
      ->broadcast(rank_ == 0 ? readOnly(&start, sizeof start) : Region(),
                  Region(&start, sizeof start), 1, DType::Float64, 0)
      .wait();
  sleepUntil(start);
  return start;
}

std::vector<RankReport> Team::exchange(const RankReport& mine) {
  std::vector<RankReport> all(static_cast<std::size_t>(size_));
  control_
      ->allGather(readOnly(&mine, sizeof mine), Region(all.data(), all.size() * sizeof mine),
                  sizeof mine, DType::UInt8)
      .wait();
  return all;
}

}  // namespace byway::tools
