// SPDX-License-Identifier: BSD-3-Clause
#include <exception>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "byway/base/error.h"
#include "byway/base/log.h"
#include "byway/tools/command.h"
#include "byway/tools/env.h"
#include "byway/tools/version.h"

namespace byway::tools {
namespace {

spdlog::level::level_enum levelOf(LogLevel level) {
  switch (level) {
    case LogLevel::Debug:
      return spdlog::level::debug;
    case LogLevel::Info:
      return spdlog::level::info;
    case LogLevel::Warning:
      return spdlog::level::warn;
    case LogLevel::Error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

// The library's log goes to stderr; coloured on a terminal only.
void logToStderr(bool verbose) {
  auto logger = spdlog::stderr_color_mt("byway");
  logger->set_pattern("%^%l%$: %v");
  logger->set_level(verbose ? spdlog::level::debug : spdlog::level::warn);
  setLogHook(
      [logger](LogLevel level, const std::string& line) { logger->log(levelOf(level), line); });
}

std::string oneLine(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) {
    text.replace(at, 1, "; ");
  }
  return text;
}

// The library names the function; "byway plan: plan: ..." would say it twice.
std::string withoutFunction(const std::string& command, const std::string& what) {
  const std::string_view prefix = command == "plan"     ? "plan: "
                                  : command == "limits" ? "limit: "
                                                        : "";
  return what.starts_with(prefix) ? what.substr(prefix.size()) : what;
}

int complain(const std::string& command, const std::string& what, int status) {
  fmt::print(stderr, "byway{}{}: {}\n", command.empty() ? "" : " ", command, oneLine(what));
  return status;
}

int act(const std::string& command, const Action& action) {
  try {
    return action();
  } catch (const Error& error) {
    return complain(command, withoutFunction(command, error.what()),
                    error.code() == ErrorCode::InvalidArgument ? kBadInput : kFailed);
  } catch (const std::exception& error) {
    return complain(command, error.what(), kFailed);
  }
}

// Empty where the first word that is no option names a command, or there is none; so for commands
// of commands.
std::string unknownCommand(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* at = &app;
  for (const std::string& word : arguments) {
    if (!word.empty() && word[0] == '-') continue;
    const auto named =
        at->get_subcommands([&](const CLI::App* s) { return s->get_name() == word; });
    if (named.empty()) return word;
    at = named[0];
    if (at->get_subcommands([](const CLI::App*) { return true; }).empty()) return "";
  }
  return "";
}

// "byway plan: --ranks: Value x not in range; see byway plan --help".
int misuse(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const std::string command = chosen.empty() ? "" : chosen[0]->get_name();
  const std::string see =
      command.empty() ? "byway --help" : fmt::format("byway {} --help", command);
  return complain(command, fmt::format("{} (see {})", error.what(), see), kBadInput);
}

// Of another command's processes, which has warned already.
bool isRank(const std::string& command) {
  return command == "demo-rank" || command == "bench-rank" || command == "bench-peer-rank";
}

}  // namespace

int runCommandLine(std::vector<std::string> arguments) {
  CLI::App app("Collective communication that leaves no link idle.", "byway");
  Action action;
  bool verbose = false;
  app.set_version_flag("--version", versionText());
  app.add_flag("-v,--verbose", verbose, "Print what the library logs");
  app.require_subcommand(1);
  const auto program = splitRunArguments(arguments);
  const auto traced = splitTraceArguments(arguments);
  addDemoCommand(app, action);
  addPlanCommand(app, action);
  addLimitsCommand(app, action);
  addVerifyCommand(app, action);
  addTableCommand(app, action);
  addBenchCommand(app, action);
  addRunCommand(app, action, program);
  addProbeCommand(app, action);
  addTraceCommand(app, action, traced);
  addDoctorCommand(app, action);
  addDemoRankCommand(app, action);
  addBenchPeerRankCommand(app, action);
  addBenchRankCommand(app, action);
  if (const auto word = unknownCommand(app, arguments); !word.empty()) {
    return complain("", fmt::format("\"{}\" is no command (see byway --help)", word), kBadInput);
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& wish) {  // help or version
    return app.exit(wish);
  } catch (const CLI::ParseError& error) {
    return misuse(app, error);
  } catch (const Error& error) {
    return complain("", error.what(), kBadInput);
  }
  logToStderr(verbose);
  const std::string command = app.get_subcommands()[0]->get_name();
  if (command != "doctor" && !isRank(command)) warnOfUnknownVariables();
  return act(command, action);
}

}  // namespace byway::tools
