// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/python.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace byway::tools {
namespace {

constexpr int kCannotRun = 127;

int spawn(std::vector<std::string> program, bool quiet) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (quiet) {
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
      ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0);
    }
  }
  std::vector<char*> argv;
  argv.reserve(program.size() + 1);
  for (auto& argument : program) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int failure = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return kCannotRun;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::string ownPath() {
  std::error_code failure;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", failure);
  return failure ? "byway" : path.string();
}

std::string pythonCommand() {
  std::error_code ignored;
  const auto beside = std::filesystem::path(ownPath()).parent_path() / "python";
  return std::filesystem::exists(beside, ignored) ? beside.string() : "python3";
}

std::vector<std::string> pythonCandidates() {
  std::vector<std::string> candidates{pythonCommand()};
  std::error_code ignored;
  const std::string ofSources =
      BYWAY_SOURCE_DIR "/.venv/bin/python";  // a build that is not installed
  if (std::filesystem::exists(ofSources, ignored)) candidates.push_back(ofSources);
  if (candidates.front() != "python3") candidates.emplace_back("python3");
  return candidates;
}

bool pythonRuns(const std::string& python, const std::string& code) {
  return spawn({python, "-c", code}, true) == 0;
}

int runProgram(const std::vector<std::string>& program) { return spawn(program, false); }

}  // namespace byway::tools
