// SPDX-License-Identifier: BSD-3-Clause
// byway bench: the chosen plan against direct over sizes, in one scenario.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/tools/bench/against_runs.h"
#include "byway/tools/bench/bench_options.h"
#include "byway/tools/bench/bench_report.h"
#include "byway/tools/bench/bench_runs.h"
#include "byway/tools/bench/peers/peer_install.h"
#include "byway/tools/command.h"
#include "byway/tools/demo/oracle.h"
#include "byway/tools/files.h"
#include "byway/tools/picture.h"

namespace byway::tools {
namespace {

void checkFiles(const BenchOptions& options) {
  if (!options.json.empty()) requireWritable(options.json);
  if (options.picture.empty()) return;
  if (options.json.empty() || options.json == "-") {
    throw Error(ErrorCode::InvalidArgument, "--picture: it is drawn from a --json file");
  }
  requireWritable(options.picture);
}

int conclude(const BenchOptions& options, const BenchSettings& settings, ResultsFile& results) {
  const auto checks = checksOf(settings, results.cells());
  results.finish(checks);
  if (!results.cells().empty()) printBenchTable(settings, results.cells());
  printRefused(results.refused());
  const bool good = printBenchChecks(checks);
  if (!options.json.empty() && options.json != "-") fmt::print("results: {}\n", options.json);
  std::fflush(stdout);
  if (!options.picture.empty()) drawPicture(options.json, options.picture);
  return good && !results.cells().empty() ? kOk : kFailed;
}

int runBench(const BenchOptions& options) {
  const BenchSettings settings = options.settings();
  const auto cells = benchCells(settings);
  checkFiles(options);
  if (!settings.isVirtual || options.values) requireOracle(settings.dtype);
  ResultsFile results(options.json, settings);
  if (options.resume.empty()) {
    results.resumeUnfinished(cells);
  } else {
    results.resume(options.resume, cells);
  }
  printBenchHeading(settings, cells.size(), results.cells().size());
  if (settings.isVirtual) {
    runVirtualCells(settings, cells, options.values, results);
  } else if (!settings.against.empty()) {
    const std::string cache = options.peerCache.empty() ? defaultPeerCache() : options.peerCache;
    runCellsAgainst(settings, cells, cache, results);
  } else if (const int status = runRealCells(settings, cells, results); status != 0) {
    return status;
  }
  return conclude(options, settings, results);
}

void addScenario(CLI::App& bench, Action& action, Scenario scenario, const char* description) {
  auto* sub = bench.add_subcommand(toString(scenario), description);
  auto options = std::make_shared<BenchOptions>();
  options->scenario = scenario;
  addBenchOptions(*sub, *options);
  sub->callback([&action, options] { action = [options] { return runBench(*options); }; });
}

}  // namespace

void addBenchCommand(CLI::App& app, Action& action) {
  auto* bench = app.add_subcommand(
      "bench", "Measure the chosen plan against direct over sizes, or world collectives");
  bench->require_subcommand(1);
  addScenario(*bench, action, Scenario::Fused, "Several groups in one call");
  addScenario(*bench, action, Scenario::Parallel, "The same groups, each with a call of its own");
  addScenario(*bench, action, Scenario::Single, "One group, the other ranks help");
  addScenario(*bench, action, Scenario::Flat, "All ranks on this host, links not slowed");
}

}  // namespace byway::tools
