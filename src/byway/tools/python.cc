// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/python.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

namespace byway::tools {
namespace {

constexpr int kCannotRun = 127;

// Its output goes to the file `output`; to the launcher's where that is empty.
int spawn(std::vector<std::string> program, const std::string& output) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (!output.empty()) {
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
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
  return spawn({python, "-c", code}, "/dev/null") == 0;
}

std::optional<std::string> pythonSays(const std::string& python, const std::string& code) {
  const int fd = ::memfd_create("byway-python", 0);
  if (fd < 0) return std::nullopt;
  const std::string file = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd);
  const int status = spawn({python, "-c", code}, file);
  std::string said;
  std::array<char, 512> part{};
  ssize_t bytes = 0;
  while ((bytes = ::pread(fd, part.data(), part.size(), static_cast<off_t>(said.size()))) > 0) {
    said.append(part.data(), static_cast<std::size_t>(bytes));
  }
  ::close(fd);
  if (status != 0) return std::nullopt;
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return said;
}

int runProgram(const std::vector<std::string>& program) { return spawn(program, ""); }

}  // namespace byway::tools
