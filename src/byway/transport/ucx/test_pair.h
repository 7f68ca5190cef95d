// SPDX-License-Identifier: BSD-3-Clause
// For tests: two transports over UCX in one process, driven by one thread.
#pragma once

#include <fcntl.h>

#include <set>

#include "byway/transport/test_world.h"
#include "byway/transport/ucx/ucx_wire.h"

namespace byway::testing {

constexpr Seconds kPatience = 30;

class UcxPair : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 2; ++i) t[i].setSink(&sinks[i]);
    to1 = t[0].connect(t[1].address());  // the other side learns of it by the greeting
    from0 = t[1].connect(t[0].address());
  }
  void TearDown() override {
    for (Transport& transport : t) transport.close(2);
  }

  // Until the condition holds; then until nothing happens any more.
  template <class Condition>
  void drive(Condition isDone) {
    const Seconds deadline = SteadyClock::instance().now() + kPatience;
    while (!isDone()) {
      ASSERT_LT(SteadyClock::instance().now(), deadline);
      for (Transport& transport : t) transport.progress();
    }
  }
  void settle() {
    for (int quiet = 0; quiet < 20; ++quiet) {
      for (Transport& transport : t) quiet = transport.progress() ? 0 : quiet;
    }
  }
  void send(const MatchKey& key, const std::vector<std::byte>& data, Probe& probe) {
    const ConstBuffer piece(data.data(), data.size());
    t[0].send(to1, key, Stamp{key.sequence}, {&piece, 1}, probe.completion());
  }
  void recv(const MatchKey& key, std::vector<std::byte>& data, Probe& probe) {
    const Buffer piece{data.data(), data.size()};
    t[1].recv(from0, key, {&piece, 1}, probe.completion());
  }

  static std::set<int> openNow() {
    std::set<int> open;
    for (int fd = 0; fd < 1024; ++fd) {
      if (fcntl(fd, F_GETFD) >= 0) open.insert(fd);
    }
    return open;
  }

  const std::set<int> openBefore = openNow();
  Transport t[2] = {Transport(makeUcxWire()), Transport(makeUcxWire())};
  Sink sinks[2];
  PeerId to1 = -1, from0 = -1;
};

}  // namespace byway::testing
