// SPDX-License-Identifier: BSD-3-Clause
// The subcommands of `byway`, one file each.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace byway::tools {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;    // the command ran, and the answer is no
inline constexpr int kBadInput = 2;  // one line on stderr says what and where

// What a parsed command line does; returns the exit status. Throws byway::Error.
using Action = std::function<int()>;

// Each adds a subcommand that sets `action` when it is chosen.
void addBenchCommand(CLI::App& app, Action& action);
void addBenchPeerRankCommand(CLI::App& app, Action& action);
void addBenchRankCommand(CLI::App& app, Action& action);
void addDemoCommand(CLI::App& app, Action& action);
void addDemoRankCommand(CLI::App& app, Action& action);
void addDoctorCommand(CLI::App& app, Action& action);
void addLimitsCommand(CLI::App& app, Action& action);
void addPlanCommand(CLI::App& app, Action& action);
void addProbeCommand(CLI::App& app, Action& action);
// `program` is what `byway run` starts: see splitRunArguments.
void addRunCommand(CLI::App& app, Action& action, std::vector<std::string> program);
void addTableCommand(CLI::App& app, Action& action);
void addTraceCommand(CLI::App& app, Action& action, std::vector<std::string> program);
void addVerifyCommand(CLI::App& app, Action& action);

// Takes the program and its arguments off the end of `run [options] [--] PROGRAM...`, so that its
// options are not taken for byway's.
std::vector<std::string> splitRunArguments(std::vector<std::string>& arguments);
// The same for `trace [options] -- PROGRAM...`; nothing without the "--".
std::vector<std::string> splitTraceArguments(std::vector<std::string>& arguments);

// The whole command; `arguments` without the program's name. Returns the exit status.
int runCommandLine(std::vector<std::string> arguments);

}  // namespace byway::tools
