// SPDX-License-Identifier: BSD-3-Clause
// byway trace: the timeline of a run, for Perfetto or Chrome.
#include <algorithm>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/tools/command.h"
#include "byway/tools/files.h"
#include "byway/tools/launcher.h"
#include "byway/tools/option_checks.h"
#include "byway/tools/trace/merge.h"

namespace byway::tools {
namespace {

struct Options {
  std::string folder, output = "byway-trace.json";
  int ranks = 1;
  std::vector<std::string> program;
};

void merge(const std::string& folder, const Options& options) {
  const MergedTrace trace = mergeTrace(folder);
  writeFileAtomically(options.output, trace.json);
  if (options.output == "-") return;
  fmt::print("{} ranks, {} calls, {} transfers, {} local steps\n", trace.ranks, trace.calls,
             trace.transfers, trace.steps);
  if (trace.hosts > 1) {
    fmt::print("ranks of {} hosts: aligned by the hosts' clocks of the day\n", trace.hosts);
  }
  fmt::print("trace: {} (open it in https://ui.perfetto.dev)\n", options.output);
}

int runTraced(const Options& options) {
  const TemporaryFolder folder("byway-trace");
  LaunchOptions job;
  job.title = "byway trace";
  job.ranks = options.ranks;
  job.program = options.program;
  job.environment = {{"BYWAY_TRACE", folder.path()}};
  const int status = launch(job);
  // What a failed job did is worth a look, too.
  try {
    merge(folder.path(), options);
  } catch (const Error&) {
    if (status == 0) throw;
  }
  return status;
}

int trace(const Options& options) {
  if (options.folder.empty() == options.program.empty()) {
    throw Error(ErrorCode::InvalidArgument,
                "give either a FOLDER that BYWAY_TRACE named, or a program: byway trace -- "
                "PROGRAM...");
  }
  requireWritable(options.output);
  if (!options.program.empty()) return runTraced(options);
  merge(options.folder, options);
  return kOk;
}

}  // namespace

std::vector<std::string> splitTraceArguments(std::vector<std::string>& arguments) {
  const auto isOption = [](const std::string& word) { return word.starts_with('-'); };
  const auto first = std::find_if_not(arguments.begin(), arguments.end(), isOption);
  if (first == arguments.end() || *first != "trace") return {};
  const auto dashes = std::find(first, arguments.end(), "--");
  if (dashes == arguments.end()) return {};
  std::vector<std::string> program(dashes + 1, arguments.end());
  arguments.erase(dashes, arguments.end());
  return program;
}

void addTraceCommand(CLI::App& app, Action& action, std::vector<std::string> program) {
  auto* sub = app.add_subcommand(
      "trace", "The timeline of a run for Perfetto: byway trace [-n N] -- PROGRAM... or FOLDER");
  sub->footer(
      "Runs the program with BYWAY_TRACE set to a temporary folder and merges what its ranks left\n"
      "there; or merges a FOLDER that an earlier run filled.");
  auto options = std::make_shared<Options>();
  options->program = std::move(program);
  constexpr int kMostRanks = 4096;
  sub->add_option("folder", options->folder, "What BYWAY_TRACE named");
  sub->add_option("-n,--ranks", options->ranks, "Start so many ranks of the program")
      ->capture_default_str()
      ->check(wholeNumber(1, kMostRanks));
  sub->add_option("-o,--output", options->output, "The trace")->capture_default_str();
  sub->callback([&action, options] { action = [options] { return trace(*options); }; });
}

}  // namespace byway::tools
