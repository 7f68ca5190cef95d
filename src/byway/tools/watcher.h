// SPDX-License-Identifier: BSD-3-Clause
// Cleans up after a launcher that was killed before it could.
#pragma once

#include <sys/types.h>

#include <string>

namespace byway::tools {

// A small process that waits for the launcher's end. If that comes before the destructor, it kills
// the process groups and removes the files that the folder's list kLeftovers names, one a line, and
// the folder.
class Watcher {
 public:
  explicit Watcher(const std::string& folder);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  void add(pid_t group) const;
  static constexpr const char* kLeftovers = "leftovers";

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;
};

}  // namespace byway::tools
