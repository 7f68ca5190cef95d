// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/bench/bench_runs.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "byway/base/cores.h"
#include "byway/base/error.h"
#include "byway/tools/bench/bench_report.h"
#include "byway/tools/bench/job.h"
#include "byway/tools/bench/memory.h"
#include "byway/tools/demo/cell_runner.h"
#include "byway/tools/demo/team.h"
#include "byway/tools/files.h"
#include "byway/tools/launcher.h"
#include "byway/tools/python.h"
#include "byway/tools/values.h"
#include "byway/tools/watcher.h"

namespace byway::tools {
namespace {

// A cell that is to run, with all that is known before it does.
struct Ahead {
  CellResult result;
  double gain = 1;
};

std::vector<DemoCell> without(const std::vector<DemoCell>& cells, const ResultsFile& results) {
  std::vector<DemoCell> left;
  for (const DemoCell& cell : cells) {
    if (!results.has(keyOf(cell))) left.push_back(cell);
  }
  return left;
}

// Whether the cell fits the budget; where not it is refused.
bool fits(std::uint64_t need, const DemoCell& cell, std::uint64_t budget, ResultsFile& results) {
  if (need <= budget) return true;
  results.refuse(cell, fmt::format("{} needs {} of memory, --memory allows {}",
                                   bytesText(cell.bytes()), bytesText(need), bytesText(budget)));
  return false;
}

CellResult timed(const DemoCell& cell, const Topology& links, const PlannedCell& planned) {
  CellResult result;
  result.cell = cell;
  result.times = computeTimes(cell, links, planned);
  result.plan = planEventOf(cell, planned);
  RunEvent run;
  run.cell = cell.number;
  run.duration = result.times.directComputed;
  result.direct.push_back(run);
  run.way = Way::Chosen;
  run.duration = result.times.chosenComputed;
  result.chosen.push_back(run);
  return result;
}

DemoSettings linksOf(const BenchSettings& settings) {
  DemoSettings links;
  if (settings.scenario == Scenario::Flat) {
    links.rate = links.latency = 0;
    return links;
  }
  links.rate = settings.links.link(0, 1);
  links.latency = settings.links.alpha;
  return links;
}

// Ranks that share each core. Unlike the demo's, whose long calls leave the cores idle, a bench's
// short ones have all ranks at work at once, and a rank waits while others have its core.
double ranksPerCore(int ranks) { return std::max(1.0, ranks / static_cast<double>(coresHere())); }

// What ranks tell the planner: the links and what this host adds to them.
Topology plannersView(const BenchSettings& settings, const DemoCell& cell) {
  if (settings.scenario == Scenario::Flat) return settings.links;
  // Of a core for sending or taking one message; measured 20 to 33 us for both sides together.
  constexpr Seconds kMessage = 15e-6;
  Topology view = demoTopology(linksOf(settings), cell);
  view.message = kMessage * ranksPerCore(cell.ranks);
  return view;
}

Ahead aheadOf(const BenchSettings& settings, const DemoCell& cell, const PlannedCell& planned) {
  Ahead ahead;
  ahead.result.cell = cell;
  ahead.gain = planned.gain;
  if (settings.scenario != Scenario::Flat) {
    ahead.result.times = computeTimes(cell, settings.links, planned);
  }
  return ahead;
}

// Seconds that a cell may take, seen once on two cores.
Seconds expectedSeconds(const BenchSettings& settings, const Ahead& ahead) {
  constexpr Seconds kRun = 0.02, kPerByte = 4e-9;
  const Seconds overhead =
      2 * (kRun + kPerByte * static_cast<double>(bufferBytes(ahead.result.cell)));
  const int repeats = repeatsFor(ahead.result.times.directComputed + kRun, settings.rule.sample);
  return settings.rule.least * repeats *
         (ahead.result.times.directComputed + ahead.result.times.chosenComputed + overhead);
}

// Follows rank 0's events.
class Collector {
 public:
  Collector(std::vector<Ahead>& cells, const BenchSettings& settings, BenchProgress& progress,
            ResultsFile& results)
      : settings_(settings), progress_(progress), results_(results) {
    for (Ahead& cell : cells) byNumber_[cell.result.cell.number] = &cell;
  }

  void line(int rank, Stream stream, std::string_view text) {
    const DemoEvent event = rank == 0 && stream == Stream::Out ? eventOf(text) : DemoEvent{};
    if (event.plan) {
      cell(event.plan->cell).result.plan = *event.plan;
      tell(event.plan->cell);
    } else if (event.run) {
      CellResult& result = cell(event.run->cell).result;
      (event.run->way == Way::Direct ? result.direct : result.chosen).push_back(*event.run);
      tell(event.run->cell);
    } else if (event.end) {
      const Ahead& ahead = cell(event.end->cell);
      results_.add(measuredOf(ahead.result, ahead.gain, settings_.rule));
      progress_.finished(results_.cells().back());
      ++done_;
    } else {
      fmt::print(stderr, "[{}] {}\n", rank, text);
    }
  }
  bool complete() const { return done_ == byNumber_.size(); }

 private:
  Ahead& cell(int number) { return *byNumber_.at(number); }
  void tell(int number) {
    const CellResult& result = cell(number).result;
    progress_.running(result.cell.name() + ", " + bytesText(result.cell.bytes()),
                      result.chosen.size());
  }

  const BenchSettings& settings_;
  BenchProgress& progress_;
  ResultsFile& results_;
  std::map<int, Ahead*> byNumber_;
  std::size_t done_ = 0;
};

// A run takes its link time, on cores that others may keep busy.
Seconds deadlineFor(const std::vector<Ahead>& cells) {
  constexpr Seconds kLeast = 60;
  constexpr double kSlowest = 10;
  Seconds longest = 0;
  for (const Ahead& one : cells) longest = std::max(longest, one.result.times.directComputed);
  return kLeast + kSlowest * longest;
}

}  // namespace

void runVirtualCells(const BenchSettings& settings, const std::vector<DemoCell>& cells, bool values,
                     ResultsFile& results) {
  const auto left = without(cells, results);
  std::vector<double> expected;  // time grows with messages, hardly with bytes
  for (const DemoCell& cell : left) {
    constexpr double kPlain = 0.02, kPerByte = 2e-8;
    expected.push_back(kPlain + (values ? kPerByte * static_cast<double>(bufferBytes(cell)) : 0));
  }
  BenchProgress progress(results.cells().size(), expected);
  for (const DemoCell& cell : left) {
    progress.running(cell.name() + ", " + bytesText(cell.bytes()), 0);
    const PlannedCell planned = planCell(cell, settings.links);
    if (values && !fits(memoryNeed(cell, planned), cell, settings.memory, results)) continue;
    const CellResult result =
        values ? runVirtually(cell, settings.links, planned) : timed(cell, settings.links, planned);
    results.add(measuredOf(result, planned.gain, settings.rule));
    progress.finished(results.cells().back());
  }
  progress.end();
}

int runRealCells(const BenchSettings& settings, const std::vector<DemoCell>& cells,
                 ResultsFile& results) {
  std::vector<Ahead> ahead;
  std::map<std::string, DemoCell> kinds;  // by links and communicators
  BenchJob job;
  job.links = linksOf(settings);
  job.rule = settings.rule;
  for (const DemoCell& cell : without(cells, results)) {
    const PlannedCell planned = planCell(cell, plannersView(settings, cell));
    if (!fits(memoryNeed(cell, planned), cell, settings.memory, results)) continue;
    ahead.push_back(aheadOf(settings, cell, planned));
    job.cells.push_back(cell);
    kinds.emplace(cell.communicatorKey(), cell);
  }
  if (ahead.empty()) return 0;
  job.links.timeout = deadlineFor(ahead);
  const TemporaryFolder folder("byway-bench");
  const Watcher watcher(folder.path());
  writeFileAtomically(folder.path() + "/job.json", toJson(job));
  for (const auto& [key, cell] : kinds) {
    writeFileAtomically(topologyFile(folder.path(), cell), toJson(plannersView(settings, cell)));
  }
  std::vector<double> expected;
  expected.reserve(ahead.size());
  for (const Ahead& one : ahead) expected.push_back(expectedSeconds(settings, one));
  BenchProgress progress(results.cells().size(), expected);
  Collector collector(ahead, settings, progress, results);
  LaunchOptions options;
  options.title = "byway bench";
  options.ranks = settings.ranks;
  options.program = {ownPath(), "bench-rank", "--folder", folder.path()};
  options.onLine = [&](int rank, Stream stream, std::string_view text) {
    collector.line(rank, stream, text);
  };
  const int status = launch(options);
  progress.end();
  if (status == 0 && !collector.complete()) {
    throw Error(ErrorCode::Internal, "the ranks ended without telling all their results");
  }
  return status;
}

}  // namespace byway::tools
