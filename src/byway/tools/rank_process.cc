// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/rank_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "byway/base/error.h"

namespace byway::tools {
namespace {

constexpr int kCannotRun = 127;

struct Pipe {
  int read = -1, write = -1;
};

Pipe makePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(ErrorCode::Resource, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  return {ends[0], ends[1]};
}

// Everything that the child needs is made before the fork: between fork and exec nothing may be
// allocated.
class Image {
 public:
  explicit Image(const RankSetup& setup) : program_(setup.program) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      const std::string name = text.substr(0, text.find('='));
      bool replaced = false;
      for (const auto& [key, value] : setup.environment) replaced = replaced || key == name;
      if (!replaced) environment_.push_back(text);
    }
    for (const auto& [key, value] : setup.environment)
      environment_.push_back(fmt::format("{}={}", key, value));
    for (auto& argument : program_) argv_.push_back(argument.data());
    for (auto& entry : environment_) envp_.push_back(entry.data());
    argv_.push_back(nullptr);
    envp_.push_back(nullptr);
  }
  void exec() const { ::execvpe(argv_[0], argv_.data(), envp_.data()); }

 private:
  std::vector<std::string> program_, environment_;
  std::vector<char*> argv_, envp_;
};

void redirect(int to, int from) {
  if (from >= 0 && ::dup2(from, to) < 0) ::_exit(kCannotRun);
}

[[noreturn]] void becomeRank(const Image& image, bool ownGroup, pid_t launcher, int out, int err,
                             int failures) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(kCannotRun);  // it died before the line above
  if (ownGroup) {
    ::setpgid(0, 0);
    redirect(STDIN_FILENO, ::open("/dev/null", O_RDONLY));
    redirect(STDOUT_FILENO, out);
    redirect(STDERR_FILENO, err);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  image.exec();
  const int error = errno;
  if (::write(failures, &error, sizeof error) < 0) ::_exit(kCannotRun);
  ::_exit(kCannotRun);
}

int readFailure(int fd) {
  int error = 0;
  ssize_t got = 0;
  do got = ::read(fd, &error, sizeof error);
  while (got < 0 && errno == EINTR);
  ::close(fd);
  return got == static_cast<ssize_t>(sizeof error) ? error : 0;
}

}  // namespace

int RankProcess::exitStatus() const {
  constexpr int kSignalled = 128;
  return signal != 0 ? kSignalled + signal : code;
}

void RankProcess::check() {
  siginfo_t info{};
  const auto id = static_cast<id_t>(pid);
  if (!running || ::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return;
  if (info.si_pid != pid) return;
  running = false;
  (info.si_code == CLD_EXITED ? code : signal) = info.si_status;
}

void RankProcess::release() const { ::waitpid(pid, nullptr, 0); }

RankProcess startRank(const RankSetup& setup, int& failure) {
  const Image image(setup);
  const Pipe out = setup.ownGroup ? makePipe() : Pipe{};
  const Pipe err = setup.ownGroup ? makePipe() : Pipe{};
  const Pipe failures = makePipe();
  const pid_t launcher = ::getpid();
  RankProcess rank;
  rank.pid = ::fork();
  if (rank.pid == 0) {
    becomeRank(image, setup.ownGroup, launcher, out.write, err.write, failures.write);
  }
  const int forkError = errno;
  ::close(failures.write);
  if (setup.ownGroup) {
    ::close(out.write);
    ::close(err.write);
    if (rank.pid > 0) ::setpgid(rank.pid, rank.pid);  // so that it may be signalled at once
  }
  if (rank.pid < 0) {
    throw Error(ErrorCode::Resource,
                fmt::format("cannot start a process: {}", std::strerror(forkError)));
  }
  rank.out = out.read;
  rank.err = err.read;
  rank.running = true;
  failure = readFailure(failures.read);
  return rank;
}

}  // namespace byway::tools
