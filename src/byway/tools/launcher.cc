// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/launcher.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/tools/files.h"
#include "byway/tools/line_splitter.h"
#include "byway/tools/rank_process.h"
#include "byway/tools/watcher.h"

namespace byway::tools {
namespace {

constexpr int kSignalled = 128;
constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;
constexpr Seconds kDrain = 1;  // for output of ranks that have ended
constexpr std::array kHandled{SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

// A port that is free now. Another program may take it before the job does; such jobs are rare and
// fail with a clear message of their own.
int freePort() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const bool bound =
      fd >= 0 && ::bind(fd, generic, size) == 0 && ::getsockname(fd, generic, &size) == 0;
  if (fd >= 0) ::close(fd);
  return bound ? ntohs(address.sin_port) : 0;
}

// Signals arrive on a descriptor while it lives.
class SignalQueue {
 public:
  SignalQueue() {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int signal : kHandled) ::sigaddset(&set, signal);
    fd_ = ::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    ::sigaddset(&set, SIGPIPE);  // a reader that is gone is an error of the write, cleaned up after
    ::sigprocmask(SIG_BLOCK, &set, &before_);
  }
  ~SignalQueue() {
    ::close(fd_);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;
  int fd() const { return fd_; }
  bool next(signalfd_siginfo& info) const {
    return ::read(fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info);
  }

 private:
  int fd_ = -1;
  sigset_t before_{};
};

class Job {
 public:
  explicit Job(const LaunchOptions& options)
      : options_(options),
        shared_(options.ranks == 1 && !options.onLine),
        folder_("byway-run"),
        watcher_(folder_.path()) {}

  ~Job() {  // on the way out of an exception, too
    killGroups(SIGKILL);
    for (RankProcess& rank : ranks_) {
      rank.release();
      closeOutput(rank.out);
      closeOutput(rank.err);
    }
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int run() {
    start();
    while (running() > 0) turn(untilKill());
    killGroups(SIGKILL);  // what the ranks themselves left running
    const Seconds end = SteadyClock::instance().now() + kDrain;
    while (anyOutput() && SteadyClock::instance().now() < end) turn(kDrain / 10);
    for (std::size_t r = 0; r < ranks_.size(); ++r) finishLines(r);
    return result_;
  }

 private:
  void start() {
    const std::string port = std::to_string(freePort());
    const std::string size = std::to_string(options_.ranks);
    ranks_.reserve(static_cast<std::size_t>(options_.ranks));
    lines_.resize(static_cast<std::size_t>(options_.ranks));
    for (int r = 0; r < options_.ranks && result_ == 0; ++r) {
      const std::string rank = std::to_string(r);
      RankSetup setup{options_.program, options_.environment, !shared_};
      for (const auto& [key, value] : std::initializer_list<std::pair<const char*, std::string>>{
               {"BYWAY_RANK", rank},
               {"BYWAY_SIZE", size},
               {"BYWAY_STORE", folder_.path()},
               {"RANK", rank},
               {"WORLD_SIZE", size},
               {"LOCAL_RANK", rank},
               {"LOCAL_WORLD_SIZE", size},
               {"MASTER_ADDR", "127.0.0.1"},
               {"MASTER_PORT", port}}) {
        setup.environment.emplace_back(key, value);
      }
      int failure = 0;
      ranks_.push_back(startRank(setup, failure));
      if (!shared_) watcher_.add(ranks_.back().pid);
      if (failure == 0) continue;
      say(fmt::format("cannot run {}: {}", options_.program[0], std::strerror(failure)));
      end(failure == ENOENT ? kNotFound : kNotExecutable);
    }
  }

  // Waits for something to happen, for at most `seconds`, and handles it.
  void turn(Seconds seconds) {
    std::vector<pollfd> fds{{signals_.fd(), POLLIN, 0}};
    for (const RankProcess& rank : ranks_) {
      fds.push_back({rank.out, POLLIN, 0});  // poll passes over -1
      fds.push_back({rank.err, POLLIN, 0});
    }
    constexpr int kMilli = 1000;
    ::poll(fds.data(), fds.size(), seconds == kNever ? -1 : static_cast<int>(seconds * kMilli) + 1);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (fds[1 + 2 * r].revents != 0) readOutput(r, Stream::Out, ranks_[r].out);
      if (fds[2 + 2 * r].revents != 0) readOutput(r, Stream::Err, ranks_[r].err);
    }
    signalfd_siginfo info{};
    while (signals_.next(info)) handle(info);
    reap();
    if (SteadyClock::instance().now() >= killAt_) killGroups(SIGKILL);
  }

  Seconds untilKill() const {
    if (killAt_ == kNever) return kNever;
    return std::max(0.0, killAt_ - SteadyClock::instance().now());
  }

  void handle(const signalfd_siginfo& info) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) return;
    // From the terminal the kernel has sent it to a rank in the launcher's own group already.
    const bool received = shared_ && info.ssi_code == SI_KERNEL;
    if (signal == SIGUSR1 || signal == SIGUSR2) {
      killGroups(signal);
      return;
    }
    if (interrupted_) {
      killGroups(SIGKILL);
      return;
    }
    interrupted_ = true;
    if (!received) killGroups(signal);
    if (result_ == 0) result_ = kSignalled + signal;
    killAt_ = SteadyClock::instance().now() + options_.killAfter;
  }

  void reap() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      RankProcess& rank = ranks_[r];
      if (!rank.running) continue;
      rank.check();
      if (rank.running || rank.exitStatus() == 0 || result_ != 0) continue;
      if (options_.ranks > 1) {
        say(fmt::format("rank {} {}{}", r, describe(rank),
                        running() > 0 ? "; ending the other ranks" : ""));
      }
      end(rank.exitStatus());
    }
  }

  static std::string describe(const RankProcess& rank) {
    if (rank.signal == 0) return fmt::format("exited with status {}", rank.code);
    return fmt::format("was ended by signal {} ({})", rank.signal, ::strsignal(rank.signal));
  }

  void end(int result) {
    result_ = result;
    killGroups(SIGTERM);
    killAt_ = SteadyClock::instance().now() + options_.killAfter;
  }

  // A group may hold children of a rank that has itself ended.
  void killGroups(int signal) {
    for (const RankProcess& rank : ranks_) {
      if (!shared_)
        ::kill(-rank.pid, signal);
      else if (rank.running)
        ::kill(rank.pid, signal);
    }
    if (signal == SIGKILL) killAt_ = kNever;
  }

  void readOutput(std::size_t r, Stream stream, int& fd) {
    std::array<char, 1 << 16> block;
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got > 0) {
      lines(r, stream).add({block.data(), static_cast<std::size_t>(got)},
                           [&](std::string_view line) { emit(r, stream, line); });
    } else if (got == 0 || errno != EINTR) {
      closeOutput(fd);
    }
  }

  void finishLines(std::size_t r) {
    for (const Stream stream : {Stream::Out, Stream::Err}) {
      lines(r, stream).finish([&](std::string_view line) { emit(r, stream, line); });
    }
  }

  void emit(std::size_t r, Stream stream, std::string_view line) {
    if (options_.onLine) {
      options_.onLine(static_cast<int>(r), stream, line);
      return;
    }
    std::FILE* const to = stream == Stream::Out ? stdout : stderr;
    fmt::print(to, "[{}] {}\n", r, line);
    if (std::fflush(to) != 0) {
      throw Error(ErrorCode::Resource,
                  fmt::format("cannot pass the output of the ranks on: {}", std::strerror(errno)));
    }
  }

  LineSplitter& lines(std::size_t r, Stream stream) {
    return stream == Stream::Out ? lines_[r].out : lines_[r].err;
  }
  void say(const std::string& line) { fmt::print(stderr, "{}: {}\n", options_.title, line); }
  static void closeOutput(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
  int running() const {
    int count = 0;
    for (const RankProcess& rank : ranks_) count += rank.running ? 1 : 0;
    return count;
  }
  bool anyOutput() const {
    for (const RankProcess& rank : ranks_) {
      if (rank.out >= 0 || rank.err >= 0) return true;
    }
    return false;
  }

  struct Lines {
    LineSplitter out, err;
  };
  const LaunchOptions& options_;
  const bool shared_;  // one rank with the launcher's own terminal and process group
  SignalQueue signals_;
  TemporaryFolder folder_;
  Watcher watcher_;
  std::vector<RankProcess> ranks_;
  std::vector<Lines> lines_;
  Seconds killAt_ = kNever;
  bool interrupted_ = false;
  int result_ = 0;
};

}  // namespace

int launch(const LaunchOptions& options) { return Job(options).run(); }

}  // namespace byway::tools
