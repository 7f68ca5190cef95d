// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/bench/peers/peer_team.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/tools/bench/peers/peer_loop.h"
#include "byway/tools/files.h"

namespace byway::tools {
namespace {

using byway_peers::Command;
using byway_peers::CommandKind;
using byway_peers::Hello;
using byway_peers::Reply;

constexpr Seconds kLead = 0.01;  // from the command to the start; a message takes far less
constexpr Seconds kEnd = 5;      // for ranks to end after the last command

Seconds now() { return SteadyClock::instance().now(); }

bool readable(int fd, Seconds end) {
  pollfd one{fd, POLLIN, 0};
  const Seconds left = std::max(0.0, end - now());
  return ::poll(&one, 1, static_cast<int>(left * 1000) + 1) > 0;
}

// False at the end of the connection or of the time.
template <class T>
bool receive(int fd, T& value, Seconds end) {
  auto* to = reinterpret_cast<char*>(&value);
  for (std::size_t got = 0; got < sizeof value;) {
    if (!readable(fd, end)) return false;
    const ssize_t n = ::read(fd, to + got, sizeof value - got);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    got += static_cast<std::size_t>(n);
  }
  return true;
}

bool send(int fd, const Command& command) {
  return ::send(fd, &command, sizeof command, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof command);
}

int listenAt(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  constexpr int kBacklog = 128;
  if (path.size() >= sizeof address.sun_path || fd < 0 ||
      ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd, kBacklog) != 0) {
    throw Error(ErrorCode::Resource,
                fmt::format("cannot listen at {}: {}", path, std::strerror(errno)));
  }
  return fd;
}

std::string replaced(const std::string& text, const std::string& what, const std::string& by) {
  return text == what ? by : text;
}

void copyName(char (&to)[24], const char* from) { std::strncpy(to, from, sizeof to - 1); }

std::string endOf(const std::string& log) {
  constexpr std::size_t kMost = 600;
  std::string text = readFile(log);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.empty()) return "it printed nothing";
  if (text.size() > kMost) text = "..." + text.substr(text.size() - kMost);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

PeerTeam::PeerTeam(const PeerProgram& program, int ranks, const std::string& folder,
                   const Watcher& watcher)
    : name_(program.name),
      socketPath_(fmt::format("{}/{}.socket", folder, name_)),
      log_(fmt::format("{}/{}.log", folder, name_)),
      watcher_(watcher),
      listener_(listenAt(socketPath_)),
      connections_(static_cast<std::size_t>(ranks), -1),
      ranks_(static_cast<std::size_t>(ranks), 0) {
  writeFileAtomically(log_, "");
  start(program, fmt::format("{}/{}.store", folder, name_));
}

PeerTeam::~PeerTeam() {
  signalAll(SIGCONT);
  for (const int fd : connections_) {
    if (fd >= 0) ::close(fd);
  }
  ::close(listener_);
  const Seconds end = now() + kEnd;
  const auto anyRuns = [&] {
    for (RankProcess& one : started_) one.check();
    return std::any_of(started_.begin(), started_.end(),
                       [](const RankProcess& one) { return one.running; });
  };
  constexpr useconds_t kPoll = 10000;
  while (anyRuns() && now() < end) ::usleep(kPoll);
  for (const pid_t rank : ranks_) {
    if (rank > 0 && anyRuns()) ::kill(rank, SIGKILL);
  }
  for (RankProcess& one : started_) {
    ::kill(-one.pid, SIGKILL);
    if (one.out >= 0) ::close(one.out);
    if (one.err >= 0) ::close(one.err);
    one.release();
  }
}

void PeerTeam::start(const PeerProgram& program, const std::string& store) {
  const int times = program.oneRankEach ? static_cast<int>(ranks_.size()) : 1;
  for (int rank = 0; rank < times; ++rank) {
    // What it prints goes to the log.
    std::vector<std::string> arguments{"/bin/sh", "-c", "log=$0; exec \"$@\" >>\"$log\" 2>&1",
                                       log_};
    for (const std::string& one : program.program) {
      arguments.push_back(replaced(replaced(one, kRankPlaceholder, std::to_string(rank)),
                                   kStorePlaceholder, store));
    }
    startOne(program, arguments, rank);
  }
}

void PeerTeam::startOne(const PeerProgram& program, const std::vector<std::string>& arguments,
                        int rank) {
  const std::string folder = socketPath_.substr(0, socketPath_.rfind('/'));
  RankSetup setup{arguments, program.environment, true};
  setup.environment.emplace_back("BYWAY_PEER_SOCKET", socketPath_);
  setup.environment.emplace_back("TMPDIR", folder);
  if (program.oneRankEach) {
    setup.environment.emplace_back("BYWAY_RANK", std::to_string(rank));
    setup.environment.emplace_back("BYWAY_SIZE", std::to_string(ranks_.size()));
    setup.environment.emplace_back("BYWAY_STORE", folder);
  }
  int failure = 0;
  started_.push_back(startRank(setup, failure));
  watcher_.add(started_.back().pid);
  if (failure != 0) lost(fmt::format("cannot be started: {}", std::strerror(failure)));
}

void PeerTeam::meet(Seconds timeout) {
  const Seconds end = now() + timeout;
  for (std::size_t i = 0; i < ranks_.size(); ++i) acceptOne(end);
  signalAll(SIGSTOP);
}

void PeerTeam::acceptOne(Seconds end) {
  constexpr Seconds kLook = 0.2;
  while (!readable(listener_, std::min(end, now() + kLook))) {
    if (now() >= end) lost("its ranks did not come in time");
    for (RankProcess& one : started_) {
      one.check();
      if (!one.running && one.exitStatus() != 0) {
        lost(fmt::format("ended with status {}", one.exitStatus()));
      }
    }
  }
  const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  Hello hello;
  if (fd < 0 || !receive(fd, hello, end)) lost("a rank went away at once");
  const auto rank = static_cast<std::size_t>(hello.rank);
  if (hello.rank < 0 || rank >= ranks_.size() || connections_[rank] >= 0) {
    ::close(fd);
    lost(fmt::format("rank {} came, which is not expected", hello.rank));
  }
  connections_[rank] = fd;
  ranks_[rank] = hello.pid;
  watcher_.add(hello.pid);
}

void PeerTeam::signalAll(int signal) const {
  for (const pid_t rank : ranks_) {
    if (rank > 0) ::kill(rank, signal);
  }
}

std::set<std::string> PeerTeam::sharedMemory() const {
  constexpr std::string_view kFolder = "/dev/shm/", kDeleted = " (deleted)";
  std::set<std::string> files;
  for (const pid_t rank : ranks_) {
    std::ifstream maps(fmt::format("/proc/{}/maps", rank));
    for (std::string line; std::getline(maps, line);) {
      const auto at = line.find(kFolder);
      if (at != std::string::npos && !line.ends_with(kDeleted)) files.insert(line.substr(at));
    }
  }
  return files;
}

void PeerTeam::lost(const std::string& what) const {
  throw Error(ErrorCode::Resource, fmt::format("{}: {}; {}", name_, what, endOf(log_)));
}

template <class C>
auto PeerTeam::ask(const C& command, Seconds timeout) {
  const Seconds end = now() + timeout;
  for (const int fd : connections_) {
    if (!send(fd, command)) lost("a rank is gone");
  }
  std::vector<Reply> replies(connections_.size());
  for (std::size_t r = 0; r < replies.size(); ++r) {
    if (!receive(connections_[r], replies[r], end)) {
      lost(fmt::format("rank {} ended, or took more than {:.0f} s", r, timeout));
    }
  }
  return replies;
}

PeerTeam::Checked PeerTeam::prepare(const DemoCell& cell, Seconds timeout) {
  Command command;
  command.kind = CommandKind::Prepare;
  copyName(command.collective, toString(cell.collective));
  copyName(command.dtype, toString(cell.dtype));
  command.count = cell.counts.at(0);
  signalAll(SIGCONT);
  const auto replies = ask(command, timeout);
  signalAll(SIGSTOP);
  Checked checked;
  std::size_t refusals = 0;
  for (const Reply& reply : replies) {
    checked.wrong += reply.wrong;
    checked.values += reply.checked;
    if (reply.error[0] == '\0') continue;
    ++refusals;
    checked.refusal = reply.error;
  }
  if (refusals > 0 && refusals < replies.size()) lost("some ranks failed: " + checked.refusal);
  return checked;
}

Seconds PeerTeam::run(std::uint32_t repeats, Seconds timeout) {
  Command command;
  signalAll(SIGCONT);
  command.kind = CommandKind::Warm;
  ask(command, timeout);
  command.kind = CommandKind::Run;
  command.repeats = repeats;
  command.start = now() + kLead;
  const auto replies = ask(command, timeout);
  signalAll(SIGSTOP);
  Seconds last = command.start;
  for (const Reply& reply : replies) {
    if (reply.error[0] != '\0') lost(reply.error);
    last = std::max(last, reply.end);
  }
  return (last - command.start) / repeats;
}

}  // namespace byway::tools
