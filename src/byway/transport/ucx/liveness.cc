// SPDX-License-Identifier: BSD-3-Clause
#include "byway/transport/ucx/liveness.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "byway/base/error.h"

namespace byway::ucx {
namespace {

constexpr Seconds kLookInterval = 0.5;

// glibc has a wrapper from 2.36 on only. The descriptor is close-on-exec.
int openProcess(pid_t process) { return static_cast<int>(syscall(SYS_pidfd_open, process, 0)); }

}  // namespace

std::uint64_t startOf(pid_t process) {
  std::ifstream in(fmt::format("/proc/{}/stat", process));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  // The second field is the program's name in brackets and may hold anything.
  const std::size_t name = text.rfind(')');
  if (name == std::string::npos) return 0;
  std::istringstream fields(text.substr(name + 1));
  char state = 0;
  fields >> state;
  if (state == 'Z' || state == 'X') return 0;
  constexpr int kBetween = 18;  // the state is field 3, the start field 22
  std::string skipped;
  for (int i = 0; i < kBetween; ++i) fields >> skipped;
  std::uint64_t start = 0;
  fields >> start;
  return start;
}

Liveness::Liveness(Means means) : means_(means), events_(epoll_create1(EPOLL_CLOEXEC)) {
  if (events_ >= 0) return;
  throw Error(ErrorCode::Resource,
              fmt::format("cannot make an event descriptor: {}", std::strerror(errno)));
}

Liveness::~Liveness() {
  for (const Watched& watched : watched_) {
    if (watched.descriptor >= 0) close(watched.descriptor);
  }
  close(events_);
}

int Liveness::open(const Watched& watched) const {
  if (means_ == Means::Proc) return -1;
  const int descriptor = openProcess(watched.process);
  if (descriptor < 0) return -1;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  if (epoll_ctl(events_, EPOLL_CTL_ADD, descriptor, &event) == 0) return descriptor;
  close(descriptor);
  return -1;
}

bool Liveness::watch(PeerId peer, pid_t process, std::uint64_t start) {
  Watched watched{peer, process, start, -1};
  watched.descriptor = open(watched);
  watched_.push_back(watched);
  // Asked after the descriptor was made, so it is this process's and not a later one's of that id.
  if (startOf(process) != start) {
    if (watched.descriptor >= 0) close(watched.descriptor);
    watched_.pop_back();
    return false;
  }
  if (watched.descriptor < 0) nextLook_ = 0;
  return true;
}

std::vector<PeerId> Liveness::look(Seconds now) {
  std::vector<PeerId> ended;
  const auto remove = [&](auto at) {
    ended.push_back(at->peer);
    if (at->descriptor >= 0) close(at->descriptor);  // it was taken out of epoll
    return watched_.erase(at);
  };
  std::array<epoll_event, 64> events{};
  const int count = epoll_wait(events_, events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const int descriptor = events[static_cast<std::size_t>(i)].data.fd;
    const auto at = std::find_if(watched_.begin(), watched_.end(), [descriptor](const Watched& w) {
      return w.descriptor == descriptor;
    });
    if (at == watched_.end()) continue;
    // A forked child may hold a copy of the descriptor, which would keep the event alive.
    epoll_ctl(events_, EPOLL_CTL_DEL, descriptor, nullptr);
    remove(at);
  }
  if (now < nextLook_) return ended;
  nextLook_ = kNever;
  for (auto at = watched_.begin(); at != watched_.end();) {
    if (at->descriptor >= 0) {
      ++at;
    } else if (startOf(at->process) != at->start) {
      at = remove(at);
    } else {
      nextLook_ = now + kLookInterval;
      ++at;
    }
  }
  return ended;
}

}  // namespace byway::ucx
