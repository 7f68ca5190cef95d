// SPDX-License-Identifier: BSD-3-Clause
// byway demo: direct against relay for each collective and scenario on slowed links.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/tools/command.h"
#include "byway/tools/demo/options.h"
#include "byway/tools/demo/report.h"
#include "byway/tools/demo/team.h"
#include "byway/tools/demo/virtual_run.h"
#include "byway/tools/files.h"
#include "byway/tools/launcher.h"
#include "byway/tools/picture.h"
#include "byway/tools/python.h"

namespace byway::tools {
namespace {

struct Options {
  DemoOptions demo;
  std::string json = "byway-demo.json", picture = "byway-demo.png";
  bool isVirtual = false;
};

// Runs and checks of values, seen once on two cores (docs/demo.md).
Seconds expectedSeconds(const std::vector<CellResult>& cells, int pairs) {
  constexpr Seconds kStart = 2, kOverhead = 0.35;
  Seconds sum = kStart;
  for (const CellResult& cell : cells) {
    sum += pairs * (cell.times.directComputed + cell.times.chosenComputed + 2 * kOverhead);
  }
  return sum;
}

// Follows rank 0's events.
class Collector {
 public:
  Collector(std::vector<CellResult>& cells, int pairs)
      : cells_(cells), pairs_(pairs), progress_(cells.size(), expectedSeconds(cells, pairs)) {}

  void line(int rank, Stream stream, std::string_view text) {
    const DemoEvent event = rank == 0 && stream == Stream::Out ? eventOf(text) : DemoEvent{};
    if (event.plan) {
      find(event.plan->cell).plan = *event.plan;
      progress_.running(done_, find(event.plan->cell).cell.name());
    } else if (event.run) {
      add(*event.run);
    } else {
      fmt::print(stderr, "[{}] {}\n", rank, text);
    }
  }
  void end() { progress_.end(); }
  double coresIdle() const {
    const double cores = std::max(1u, std::thread::hardware_concurrency());
    return wall_ > 0 ? std::max(0.0, 1 - cpu_ / (wall_ * cores)) : -1;
  }
  bool complete() const { return done_ == cells_.size(); }

 private:
  CellResult& find(int number) {
    return *std::find_if(cells_.begin(), cells_.end(),
                         [&](const CellResult& r) { return r.cell.number == number; });
  }
  void add(const RunEvent& run) {
    CellResult& result = find(run.cell);
    (run.way == Way::Direct ? result.direct : result.chosen).push_back(run);
    wall_ += run.duration;
    cpu_ += run.cpu;
    if (result.complete(pairs_)) progress_.finished(++done_, result);
    progress_.running(done_, result.cell.name());
  }

  std::vector<CellResult>& cells_;
  int pairs_;
  Progress progress_;
  std::size_t done_ = 0;
  Seconds wall_ = 0, cpu_ = 0;
};

// Returns the ranks' exit status.
int runReally(const Options& options, DemoResults& results) {
  const TemporaryFolder folder("byway-demo");
  for (CellResult& result : results.cells) {
    result.times = computeTimes(result.cell, results.settings);
    const std::string file = topologyFile(folder.path(), result.cell);
    if (!std::filesystem::exists(file)) {
      writeFileAtomically(file, toJson(demoTopology(results.settings, result.cell)));
    }
  }
  Collector collector(results.cells, results.settings.pairs);
  LaunchOptions job;
  job.title = "byway demo";
  job.ranks = kDemoRanks;
  job.program = {ownPath(), "demo-rank", "--folder", folder.path()};
  const auto shared = options.demo.arguments();
  job.program.insert(job.program.end(), shared.begin(), shared.end());
  job.onLine = [&](int rank, Stream stream, std::string_view text) {
    collector.line(rank, stream, text);
  };
  const int status = launch(job);
  collector.end();
  results.coresIdle = collector.coresIdle();
  if (status == 0 && !collector.complete()) {
    throw Error(ErrorCode::Internal, "the ranks ended without telling all their results");
  }
  return status;
}

bool wantsPicture(const Options& options) {
  return !options.picture.empty() && options.json != "-";
}

void draw(const Options& options) {
  if (!wantsPicture(options)) return;
  drawPicture(options.json, options.picture);
}

int finish(const Options& options, const DemoResults& results) {
  printTable(results);
  const bool good = printChecks(results);
  writeFileAtomically(options.json, results.toJson());
  if (options.json != "-") fmt::print("results: {}\n", options.json);
  std::fflush(stdout);
  draw(options);
  return good ? kOk : kFailed;
}

int runDemo(const Options& options) {
  DemoResults results;
  results.settings = options.demo.settings();
  results.onVirtualClock = options.isVirtual;
  const auto cells = demoCells(results.settings);
  requireWritable(options.json);
  if (wantsPicture(options)) requireWritable(options.picture);
  printHeading(results.settings, cells, options.isVirtual);
  if (options.isVirtual) {
    Progress progress(cells.size(), static_cast<double>(cells.size()));
    for (const DemoCell& cell : cells) {
      progress.running(results.cells.size(), cell.name());
      results.cells.push_back(runVirtually(cell, results.settings));
      progress.finished(results.cells.size(), results.cells.back());
    }
    progress.end();
    return finish(options, results);
  }
  for (const DemoCell& cell : cells) results.cells.push_back({cell, {}, {}, {}, {}});
  const int status = runReally(options, results);
  return status == 0 ? finish(options, results) : status;
}

}  // namespace

void addDemoCommand(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand(
      "demo", "Run each collective on 8 local ranks with slowed links: direct against relay");
  auto options = std::make_shared<Options>();
  addDemoOptions(*sub, options->demo);
  sub->add_flag("--virtual", options->isVirtual, "On a virtual clock: exact times, no waiting");
  sub->add_option("--json", options->json, "Write the results to FILE")->capture_default_str();
  sub->add_option("--picture", options->picture, "Draw the results into FILE; \"\" draws nothing")
      ->capture_default_str();
  sub->callback([&action, options] { action = [options] { return runDemo(*options); }; });
}

}  // namespace byway::tools
