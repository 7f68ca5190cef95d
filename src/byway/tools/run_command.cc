// SPDX-License-Identifier: BSD-3-Clause
// byway run: the local launcher.
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "byway/base/error.h"
#include "byway/tools/command.h"
#include "byway/tools/launcher.h"
#include "byway/tools/option_checks.h"

namespace byway::tools {
namespace {

constexpr int kMostRanks = 4096;

bool takesValue(const std::string& option) { return option == "-n" || option == "--ranks"; }

}  // namespace

std::vector<std::string> splitRunArguments(std::vector<std::string>& arguments) {
  std::size_t i = 0;
  while (i < arguments.size() && arguments[i].size() > 1 && arguments[i][0] == '-') ++i;
  if (i >= arguments.size() || arguments[i] != "run") return {};
  std::size_t end = i + 1;
  while (end < arguments.size() && arguments[end].size() > 1 && arguments[end][0] == '-' &&
         arguments[end] != "--") {
    end += takesValue(arguments[end]) ? 2 : 1;
  }
  end = std::min(end, arguments.size());
  std::size_t first = end;
  if (first < arguments.size() && arguments[first] == "--") ++first;
  const auto at = [&](std::size_t n) { return arguments.begin() + static_cast<std::ptrdiff_t>(n); };
  std::vector<std::string> program(at(first), arguments.end());
  arguments.erase(at(end), arguments.end());
  return program;
}

void addRunCommand(CLI::App& app, Action& action, std::vector<std::string> program) {
  auto* sub = app.add_subcommand(
      "run", "Start a program on N ranks of this host: byway run -n N [--] PROGRAM [ARGUMENTS...]");
  sub->footer(
      "Sets BYWAY_RANK, BYWAY_SIZE, BYWAY_STORE and what torchrun sets. The first rank that fails "
      "ends the\njob; its exit status is the command's (128 + signal where a signal ended it).");
  auto ranks = std::make_shared<int>(1);
  sub->add_option("-n,--ranks", *ranks, "Number of ranks")
      ->required()
      ->check(wholeNumber(1, kMostRanks));
  sub->callback([&action, ranks, program = std::move(program)] {
    action = [ranks, program] {
      if (program.empty()) {
        throw Error(ErrorCode::InvalidArgument,
                    "no PROGRAM is given (usage: byway run -n N [--] PROGRAM...)");
      }
      LaunchOptions options;
      options.ranks = *ranks;
      options.program = program;
      return launch(options);
    };
  });
}

}  // namespace byway::tools
