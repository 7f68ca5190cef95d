// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/bench/against_runs.h"

#include <algorithm>
#include <functional>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "byway/base/error.h"
#include "byway/tools/bench/bench_report.h"
#include "byway/tools/bench/memory.h"
#include "byway/tools/bench/peers/peer_install.h"
#include "byway/tools/bench/peers/peer_team.h"
#include "byway/tools/files.h"
#include "byway/tools/values.h"
#include "byway/tools/watcher.h"

namespace byway::tools {
namespace {

constexpr Seconds kMeetTimeout = 120, kCallTimeout = 120;
constexpr Seconds kSample = 5e-3;  // of repeated calls; longer calls are made once
constexpr std::uint32_t kMostRepeats = 10000;
constexpr const char* kSharedMemory = "/dev/shm";

// One library during a cell.
struct Runner {
  PeerTeam* team = nullptr;
  std::uint32_t repeats = 1;
  std::vector<double> times, ratios;  // ratios: the library's time over Byway's
  PeerTeam::Checked checked;

  bool takesPart() const { return checked.refusal.empty(); }
  bool verified() const { return checked.wrong == 0 && checked.values > 0; }
};

class Comparison {
 public:
  Comparison(const BenchSettings& settings, const std::string& cache)
      : settings_(settings),
        folder_("byway-bench"),
        memory_("byway-bench", kSharedMemory),
        memoryWatcher_(memory_.path()),
        watcher_(folder_.path()) {
    std::vector<PeerProgram> programs{ownPeer()};
    for (const std::string& name : settings.against) {
      programs.push_back(installPeer(name, settings.ranks, cache, watcher_));
    }
    for (PeerProgram& program : programs) {
      for (auto& [key, value] : program.environment) {
        if (value == kMemoryPlaceholder) value = memory_.path();
      }
      teams_.push_back(
          std::make_unique<PeerTeam>(program, settings.ranks, folder_.path(), watcher_));
      teams_.back()->meet(kMeetTimeout);
    }
    noteLeftovers();
  }

  // Byway first.
  std::vector<Runner> measure(const DemoCell& cell, const std::function<void(std::size_t)>& tell) {
    std::vector<Runner> runners(teams_.size());
    for (std::size_t i = 0; i < teams_.size(); ++i) begin(runners[i], *teams_[i], cell);
    noteLeftovers();  // some is taken at the first call
    if (!runners[0].takesPart()) {
      throw Error(ErrorCode::Internal, "byway: " + runners[0].checked.refusal);
    }
    for (std::size_t round = 0; anyNeedsMore(runners); ++round) {
      takeTurns(runners, round);
      tell(round + 1);
    }
    return runners;
  }

 private:
  static void begin(Runner& runner, PeerTeam& team, const DemoCell& cell) {
    runner.team = &team;
    runner.checked = team.prepare(cell, kCallTimeout);
    if (!runner.takesPart()) return;
    // The first calls of a turn take longer than those that follow: a few rounds until it fits. One
    // that was interrupted does not count.
    constexpr int kTries = 3;
    int tries = 0;
    for (runner.repeats = 1; runner.repeats < kMostRepeats;) {
      const Seconds one = std::max(1e-7, team.run(runner.repeats, kCallTimeout));
      if (one * runner.repeats > kSample / 2) {
        if (++tries == kTries) break;
        continue;
      }
      tries = 0;
      runner.repeats = static_cast<std::uint32_t>(
          std::clamp(kSample / one, 2.0 * runner.repeats, static_cast<double>(kMostRepeats)));
    }
  }

  // For the watcher, should the bench be killed.
  void noteLeftovers() const {
    std::string list;
    for (const auto& team : teams_) {
      for (const std::string& file : team->sharedMemory()) list += file + "\n";
    }
    writeFileAtomically(folder_.path() + "/" + Watcher::kLeftovers, list);
  }

  bool needsMore(const Runner& runner) const {
    return runner.takesPart() && tools::needsMore(runner.ratios, settings_.rule);
  }
  // Where there is nobody to compare with, Byway's own times decide.
  bool anyNeedsMore(const std::vector<Runner>& runners) const {
    return std::any_of(runners.begin() + 1, runners.end(),
                       [&](const Runner& one) { return needsMore(one); });
  }

  // Who begins changes from round to round: whoever comes first may find other caches.
  void takeTurns(std::vector<Runner>& runners, std::size_t round) const {
    std::vector<Seconds> times(runners.size(), 0);
    for (std::size_t i = 0; i < runners.size(); ++i) {
      const std::size_t at = (i + round) % runners.size();
      if (at > 0 && !needsMore(runners[at])) continue;
      times[at] = runners[at].team->run(runners[at].repeats, kCallTimeout);
      runners[at].times.push_back(times[at]);
    }
    for (std::size_t i = 1; i < runners.size(); ++i) {
      if (times[i] > 0) runners[i].ratios.push_back(times[i] / times[0]);
    }
  }

  const BenchSettings& settings_;
  TemporaryFolder folder_, memory_;
  Watcher memoryWatcher_, watcher_;
  std::vector<std::unique_ptr<PeerTeam>> teams_;
};

Measured rowFor(const BenchSettings& settings, const DemoCell& cell, const Runner& own,
                const Runner& peer) {
  Measured made = flatRow(cell, own.times);
  made.key = keyAgainst(cell, peer.team->name());
  made.route = "chosen";
  made.peer = peer.team->name();
  made.peerTime = median(peer.times);
  made.speedup = median(peer.ratios);
  made.interval = medianInterval(peer.ratios);
  made.samples = static_cast<int>(peer.ratios.size());
  made.decided = peer.ratios.size() == 1 || isDecided(peer.ratios, settings.rule);
  made.wrong = own.checked.wrong + peer.checked.wrong;
  made.verified = own.verified() && peer.verified();
  return made;
}

bool isKnown(const BenchSettings& settings, const DemoCell& cell, const ResultsFile& results) {
  return std::all_of(settings.against.begin(), settings.against.end(),
                     [&](const auto& peer) { return results.has(keyAgainst(cell, peer)); });
}

}  // namespace

void runCellsAgainst(const BenchSettings& settings, const std::vector<DemoCell>& cells,
                     const std::string& cache, ResultsFile& results) {
  std::vector<DemoCell> left;
  for (const DemoCell& cell : cells) {
    if (isKnown(settings, cell, results)) continue;
    const std::uint64_t need = bufferBytes(cell) * (settings.against.size() + 1);
    if (need > settings.memory) {
      results.refuse(cell, fmt::format("needs {} of memory for all libraries, --memory allows {}",
                                       bytesText(need), bytesText(settings.memory)));
      continue;
    }
    left.push_back(cell);
  }
  if (left.empty()) return;
  Comparison comparison(settings, cache);
  BenchProgress progress(results.cells().size(), std::vector<double>(left.size(), 1.0));
  for (const DemoCell& cell : left) {
    const std::string name = cell.name() + ", " + bytesText(cell.bytes());
    const auto runners =
        comparison.measure(cell, [&](std::size_t round) { progress.running(name, round); });
    std::vector<Measured> rows;
    for (std::size_t i = 1; i < runners.size(); ++i) {
      if (!runners[i].takesPart()) {
        results.refuse(cell,
                       fmt::format("{}: {}", runners[i].team->name(), runners[i].checked.refusal));
      } else if (!results.has(keyAgainst(cell, runners[i].team->name()))) {
        rows.push_back(rowFor(settings, cell, runners[0], runners[i]));
      }
    }
    if (!rows.empty()) progress.finished(rows.front());
    results.add(std::move(rows));
  }
  progress.end();
}

}  // namespace byway::tools
