// SPDX-License-Identifier: BSD-3-Clause
// Which processes of this host have ended. Each is watched by a descriptor of its own (pidfd),
// which nothing but its end makes readable: children that it forked do not keep it alive. Where the
// kernel or a sandbox gives no such descriptor, /proc is read twice a second. Private to ucx/.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "byway/base/clock.h"
#include "byway/transport/wire.h"

namespace byway::ucx {

// When a process started, in ticks since boot: with its id it names the process for good. 0: there
// is no such process, or it has ended and nobody has asked for its status yet.
std::uint64_t startOf(pid_t process);

class Liveness {
 public:
  enum class Means { Descriptor, Proc };
  // Throws Error{Resource}.
  explicit Liveness(Means means = Means::Descriptor);
  ~Liveness();
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

  // False when that process has ended already.
  bool watch(PeerId peer, pid_t process, std::uint64_t start);
  // Readable when a process that has a descriptor ended.
  int events() const { return events_; }
  // The latest time for the next look(): kNever while every process has a descriptor.
  Seconds nextLook() const { return nextLook_; }
  // Those that ended since the last look.
  std::vector<PeerId> look(Seconds now);

 private:
  struct Watched {
    PeerId peer;
    pid_t process;
    std::uint64_t start;
    int descriptor;  // -1: none to be had
  };
  int open(const Watched& watched) const;

  Means means_;
  int events_ = -1;  // epoll
  std::vector<Watched> watched_;
  Seconds nextLook_ = kNever;
};

}  // namespace byway::ucx
