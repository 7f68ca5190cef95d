// SPDX-License-Identifier: BSD-3-Clause
// One rank of a job, as its launcher sees it.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace byway::tools {

struct RankProcess {
  pid_t pid = -1;
  int out = -1, err = -1;  // what it prints; -1 where it keeps the launcher's descriptors
  bool running = false;
  int code = 0;    // once it has ended: its exit code,
  int signal = 0;  // or the signal that ended it

  // As a shell has it: the exit code, or 128 + signal.
  int exitStatus() const;
  // Sees whether it has ended. Its number stays taken, so that signals cannot go astray, until
  // release().
  void check();
  void release() const;
};

struct RankSetup {
  std::vector<std::string> program;
  std::vector<std::pair<std::string, std::string>> environment;
  bool ownGroup = true;  // pipes for its output, no input, a process group of its own
};

// The child dies with the launcher. `failure` is 0, or the errno of what kept the program from
// running (then the process is gone already).
RankProcess startRank(const RankSetup& setup, int& failure);

}  // namespace byway::tools
