// SPDX-License-Identifier: BSD-3-Clause
// Starts the ranks of a job on this host and ends them together.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "byway/base/clock.h"

namespace byway::tools {

enum class Stream { Out, Err };

struct LaunchOptions {
  std::string title = "byway run";  // begins the launcher's own lines on stderr
  int ranks = 1;
  std::vector<std::string> program;                              // with its arguments
  std::vector<std::pair<std::string, std::string>> environment;  // added to that of the launcher
  // Gets the ranks' output line by line. Empty: printed, after "[RANK] " when there are several
  // ranks; a single rank keeps the launcher's own descriptors.
  std::function<void(int rank, Stream stream, std::string_view line)> onLine;
  Seconds killAfter = 5;  // from SIGTERM to SIGKILL
};

// Sets BYWAY_RANK, BYWAY_SIZE and BYWAY_STORE (a new folder, removed at the end), and what torchrun
// sets: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT. The first rank
// that fails ends the job: SIGTERM, then SIGKILL. INT, TERM, HUP and QUIT go to all ranks and end
// the job in the same way; USR1 and USR2 are passed on. No rank outlives the launcher.
// Returns the exit status of the job: 0; that of the first rank that failed; 128 + signal where it,
// or the launcher, was ended by one; 126 or 127 where the program cannot be run.
int launch(const LaunchOptions& options);

}  // namespace byway::tools
