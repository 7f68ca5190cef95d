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

std::string topologyFile(const std::string& folder, const DemoCell& cell) {
  return fmt::format("{}/topology-{}.json", folder, cell.communicatorKey());
}

Team::Team(const DemoSettings& settings, std::string topologyFolder)
    : settings_(settings), topologyFolder_(std::move(topologyFolder)) {
  const LaunchInfo info = launchInfo();
  rank_ = info.rank;
  size_ = info.size;
  store_ = std::make_unique<FileStore>(info.storeFolder);
  CommunicatorOptions options;
  options.timeout = settings.timeout;
  options.topology = "host";
  control_ = Communicator::create(Endpoint::process(Pace{}), *store_, "control", firstRanks(size_),
                                  rank_, options);
}

std::vector<Communicator*> Team::communicators(const DemoCell& cell, Way way) {
  const auto [at, isNew] = met_.try_emplace({cell.communicatorKey(), way});
  if (isNew) {
    at->second = meet(cell, way);
    barrier();
  }
  std::vector<Communicator*> all;
  for (const auto& communicator : at->second) all.push_back(communicator.get());
  return all;
}

Team::Communicators Team::meet(const DemoCell& cell, Way way) {
  Communicators all;
  if (rank_ >= cell.ranks) return all;
  CommunicatorOptions options;
  options.timeout = settings_.timeout;
  options.topology = topologyFile(topologyFolder_, cell);
  options.route = way == Way::Direct ? "direct" : "";
  const auto paced =
      Endpoint::process(cell.unlike.empty() ? Pace{settings_.rate, settings_.latency, {}}
                                            : Pace::of(demoLinks(settings_, cell)));
  for (int i = 0; i < cell.communicators(); ++i) {
    const auto name = fmt::format("{}-{}-{}", way == Way::Direct ? "direct" : "chosen",
                                  cell.communicatorKey(), i);
    all.push_back(
        Communicator::create(paced, *store_, name, firstRanks(cell.ranks), rank_, options));
    if (way == Way::Chosen) warmUp(*all.back());
  }
  return all;
}

// Every pair of ranks that has a link exchanges one message that is large enough to be fetched.
// Once for both ways, which share their connections; only the chosen one can do without a link.
void Team::warmUp(Communicator& communicator) const {
  constexpr std::uint64_t kSegment = 1 << 14;
  const std::uint64_t bytes = kSegment * static_cast<std::uint64_t>(communicator.size());
  std::vector<std::byte> from(bytes), to(bytes);
  communicator
      .allToAll(readOnly(from.data(), bytes), Region(to.data(), bytes), kSegment, DType::UInt8)
      .wait();
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
