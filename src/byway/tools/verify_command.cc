// SPDX-License-Identifier: BSD-3-Clause
// byway verify: whether a schedule in a file is the collective that it claims to be.
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/schedule/json.h"
#include "byway/schedule/loads.h"
#include "byway/schedule/verify.h"
#include "byway/tools/command.h"
#include "byway/tools/files.h"
#include "byway/tools/option_checks.h"
#include "byway/tools/values.h"

namespace byway::tools {
namespace {

struct VerifyOptions {
  std::string file;
  double accumulatorRatio = 1;
};

void printFacts(const VerifiedSchedule& verified, double accumulatorRatio) {
  const Schedule& schedule = verified.schedule();
  const std::vector<double> ones(schedule.shape.blocks.size(), 1.0);
  const Loads loads = loadsOf(schedule, ones, accumulatorRatio);
  const StageNeed stage = stageNeed(schedule, ones, accumulatorRatio);
  const auto messages = std::max_element(loads.messages.begin(), loads.messages.end());
  const auto busiest = std::max_element(loads.total.begin(), loads.total.end());
  fmt::print("hash      {:016x}\n", verified.hash());
  fmt::print("size      {} phases, {} transfers, {} local steps\n", schedule.phases.size(),
             schedule.transfers.size(), schedule.steps.size());
  fmt::print("value     {:.6f} blocks of link time (sum over phases of the busiest link)\n",
             loads.sumOfMax());
  fmt::print("load      {:.6f} blocks on the busiest link in all\n",
             busiest == loads.total.end() ? 0.0 : *busiest);
  fmt::print("messages  {} at most from one rank\n",
             messages == loads.messages.end() ? 0 : *messages);
  fmt::print("stage     {:.6f} blocks on a helper, {:.6f} on any rank\n", stage.helper, stage.any);
}

int verifyFile(const VerifyOptions& options) {
  Schedule schedule = scheduleFromJson(readFile(options.file), options.file);
  const auto found = violations(schedule);
  fmt::print("schedule  \"{}\": {} of {} on {} ranks\n", schedule.name,
             toString(schedule.shape.collective), groupsText(schedule.shape.groups),
             schedule.shape.ranks);
  if (found.empty()) {
    const auto verified = verify(std::move(schedule));
    fmt::print(
        "verified  every element of every rank holds what it must, in every order of "
        "execution\n");
    printFacts(*verified, options.accumulatorRatio);
    return kOk;
  }
  fmt::print("NOT verified: {} violation{}\n", found.size(), found.size() == 1 ? "" : "s");
  for (const auto& violation : found) fmt::print("  V{}: {}\n", violation.rule, violation.what);
  return kFailed;
}

}  // namespace

void addVerifyCommand(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand(
      "verify", "Check a schedule file; exit status 1 with violations, 2 when it cannot be read");
  auto options = std::make_shared<VerifyOptions>();
  sub->add_option("FILE", options->file, "A schedule, as `byway plan --schedule` writes it")
      ->required();
  sub->add_option("--accumulator-ratio", options->accumulatorRatio,
                  "How much more a partial sum weighs than an element (2: bfloat16)")
      ->capture_default_str()
      ->check(numberAboveZero());
  sub->callback([&action, options] { action = [options] { return verifyFile(*options); }; });
}

}  // namespace byway::tools
