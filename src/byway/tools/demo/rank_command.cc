// SPDX-License-Identifier: BSD-3-Clause
// byway demo-rank: one of the demo's processes. Hidden: `byway demo` starts it.
#include <memory>

#include <CLI/CLI.hpp>

#include "byway/tools/command.h"
#include "byway/tools/demo/cell_runner.h"
#include "byway/tools/demo/options.h"
#include "byway/tools/demo/team.h"

namespace byway::tools {
namespace {

int runRank(const DemoOptions& options, const std::string& folder) {
  const DemoSettings settings = options.settings();
  const auto cells = demoCells(settings);
  Team team(settings, folder);
  for (const DemoCell& cell : cells) {
    CellRunner(team, cell).run([&](const std::vector<double>& pairs, bool) {
      return pairs.size() < static_cast<std::size_t>(settings.pairs);
    });
  }
  return kOk;
}

}  // namespace

void addDemoRankCommand(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("demo-rank", "");
  sub->group("");  // not in the help
  auto options = std::make_shared<DemoOptions>();
  auto folder = std::make_shared<std::string>();
  addDemoOptions(*sub, *options);
  sub->add_option("--folder", *folder)->required();
  sub->callback([&action, options, folder] {
    action = [options, folder] { return runRank(*options, *folder); };
  });
}

}  // namespace byway::tools
