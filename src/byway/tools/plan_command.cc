// SPDX-License-Identifier: BSD-3-Clause
// byway plan: which schedule a call would get, and why.
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "byway/planner/construction.h"
#include "byway/planner/plan_text.h"
#include "byway/schedule/json.h"
#include "byway/tools/call_arguments.h"
#include "byway/tools/command.h"
#include "byway/tools/files.h"

namespace byway::tools {
namespace {

struct PlanOptions {
  CallArguments call;
  std::string json, dot, schedule;
  bool constructions = false, steps = false;
};

int listConstructions() {
  for (const auto& construction : constructions()) {
    fmt::print("{:<8} {}\n", construction.id, construction.covers);
  }
  return kOk;
}

int showPlan(const PlanOptions& options) {
  if (options.constructions) return listConstructions();
  requireCollective(options.call, "--constructions");
  const DescribedCall call = describeCall(options.call, "host");
  for (const auto& path : {options.json, options.dot, options.schedule}) {
    if (!path.empty()) requireWritable(path);
  }
  const Plan made = plan(call.request, call.topology);
  const Schedule& schedule = made.chosen->schedule();
  fmt::print("{}", explain(made, call.request, call.topology));
  if (options.steps) fmt::print("\n{}", toText(schedule));
  if (call.topology.bus > 0) {
    fmt::print(
        "\nThe topology \"{}\" is one memory bus that all transfers share, where relay never "
        "pays.\n"
        "For ranks that are joined pair by pair: --topology mesh:{}\n",
        call.topology.name, call.topology.ranks);
  }
  if (!options.json.empty()) {
    writeFileAtomically(options.json, planToJson(made, call.request, call.topology));
  }
  if (!options.dot.empty()) writeFileAtomically(options.dot, toDot(schedule));
  if (!options.schedule.empty()) writeFileAtomically(options.schedule, toJson(schedule));
  return kOk;
}

}  // namespace

void addPlanCommand(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("plan", "Show which schedule a call would get, and why");
  auto options = std::make_shared<PlanOptions>();
  addCallArguments(*sub, options->call);
  sub->add_option("--route", options->call.route, "Take this candidate (\"direct\", \"S3 K=24\")");
  sub->add_option("--json", options->json, "Write the plan to FILE");
  sub->add_option("--dot", options->dot, "Write a Graphviz picture of the schedule to FILE");
  sub->add_option("--schedule", options->schedule, "Write the schedule to FILE (for byway verify)");
  sub->add_flag("--steps", options->steps, "Print every transfer and step");
  sub->add_flag("--constructions", options->constructions, "List the families of schedules");
  sub->callback([&action, options] { action = [options] { return showPlan(*options); }; });
}

}  // namespace byway::tools
