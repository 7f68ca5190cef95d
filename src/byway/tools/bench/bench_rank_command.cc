// SPDX-License-Identifier: BSD-3-Clause
// byway bench-rank: one of the bench's processes. Hidden: `byway bench` starts it.
#include <memory>

#include <CLI/CLI.hpp>

#include "byway/tools/bench/job.h"
#include "byway/tools/command.h"
#include "byway/tools/demo/cell_runner.h"
#include "byway/tools/files.h"

namespace byway::tools {
namespace {

// Pairs of one plan with itself say nothing; a few runs see that its values are right.
constexpr std::size_t kPairsOfOnePlan = 3;

int runRank(const std::string& folder) {
  const BenchJob job = benchJobFromJson(readFile(folder + "/job.json"));
  Team team(job.links, folder);
  for (const DemoCell& cell : job.cells) {
    CellRunner runner(team, cell, job.rule.sample);
    if (cell.scenario == Scenario::Flat) {
      runner.runChosen(
          [&](const std::vector<Seconds>& times) { return needsMore(times, job.rule); });
    } else {
      runner.run([&](const std::vector<double>& ratios, bool samePlan) {
        return samePlan ? ratios.size() < kPairsOfOnePlan : needsMore(ratios, job.rule);
      });
    }
    runner.end();
  }
  return kOk;
}

}  // namespace

void addBenchRankCommand(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("bench-rank", "");
  sub->group("");  // not in the help
  auto folder = std::make_shared<std::string>();
  sub->add_option("--folder", *folder)->required();
  sub->callback([&action, folder] { action = [folder] { return runRank(*folder); }; });
}

}  // namespace byway::tools
