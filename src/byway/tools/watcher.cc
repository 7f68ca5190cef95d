// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/watcher.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

namespace byway::tools {
namespace {

constexpr pid_t kAllIsWell = 0;

[[noreturn]] void watch(int pipe, const std::string& folder) {
  ::setsid();  // away from the terminal's signals, which are the launcher's to handle
  std::vector<pid_t> groups;
  pid_t group = 0;
  for (;;) {
    const ssize_t got = ::read(pipe, &group, sizeof group);
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof group)) break;
    if (group == kAllIsWell) ::_exit(0);
    groups.push_back(group);
  }
  for (const pid_t one : groups) ::kill(-one, SIGKILL);
  std::error_code ignored;
  std::ifstream leftovers(folder + "/" + Watcher::kLeftovers);
  for (std::string path; std::getline(leftovers, path);) std::filesystem::remove(path, ignored);
  std::filesystem::remove_all(folder, ignored);
  ::_exit(0);
}

}  // namespace

Watcher::Watcher(const std::string& folder) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;  // it is a second line of defence only
  pid_ = ::fork();
  if (pid_ == 0) {
    ::close(ends[1]);
    watch(ends[0], folder);
  }
  ::close(ends[0]);
  pipe_ = ends[1];
}

Watcher::~Watcher() {
  add(kAllIsWell);
  if (pipe_ >= 0) ::close(pipe_);
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
}

void Watcher::add(pid_t group) const {
  if (pipe_ >= 0 && ::write(pipe_, &group, sizeof group) < 0) return;  // it is gone: so be it
}

}  // namespace byway::tools
