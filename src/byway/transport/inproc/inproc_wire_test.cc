// SPDX-License-Identifier: BSD-3-Clause
// Ranks as threads: what ThreadSanitizer has to see. Order and sizes are transport_test.cc's.
#include "byway/transport/inproc/inproc_wire.h"

#include <array>
#include <atomic>
#include <thread>

#include "byway/base/error.h"
#include "byway/transport/test_world.h"

namespace byway {
namespace {

using testing::pattern;
using testing::Probe;

constexpr Seconds kPatience = 60;

// Drives one transport as an engine would, until `isDone`.
template <class Condition>
void drive(Transport& transport, Condition isDone) {
  const Seconds deadline = transport.clock().now() + kPatience;
  while (!isDone()) {
    if (transport.progress()) continue;
    ASSERT_LT(transport.clock().now(), deadline);
    if (transport.arm()) transport.sleep(std::min(deadline, transport.nextTimer()));
  }
}

TEST(InprocWire, ThreadsExchangeAllToAll) {
  constexpr std::uint32_t kRanks = 4, kRounds = 60;
  auto fabric = std::make_shared<InprocFabric>();
  std::vector<std::unique_ptr<Transport>> transports;
  for (std::uint32_t r = 0; r < kRanks; ++r) {
    transports.push_back(
        std::make_unique<Transport>(makeInprocWire(fabric, SteadyClock::instance())));
  }
  auto rank = [&](std::uint32_t self) {
    Transport& transport = *transports[self];
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      const std::size_t bytes = round % 3 == 0 ? 40'000 + round : 10 + round;
      std::vector<std::vector<std::byte>> out, in(kRanks, std::vector<std::byte>(bytes));
      std::vector<Probe> probes(2 * kRanks);
      for (std::uint32_t peer = 0; peer < kRanks; ++peer) {
        out.push_back(pattern(self, round * kRanks + peer, bytes));
      }
      for (std::uint32_t peer = 0; peer < kRanks; ++peer) {
        const PeerId id = transport.connect(transports[peer]->address());
        const ConstBuffer from(out[peer].data(), bytes);
        const Buffer to{in[peer].data(), bytes};
        transport.send(id, {1, round, peer, self}, {}, {&from, 1}, probes[peer].completion());
        transport.recv(id, {1, round, self, peer}, {&to, 1}, probes[kRanks + peer].completion());
      }
      drive(transport, [&] {
        return std::all_of(probes.begin(), probes.end(), [](const Probe& p) { return p.calls; });
      });
      for (std::uint32_t peer = 0; peer < kRanks; ++peer) {
        ASSERT_TRUE(probes[peer].is(Outcome::Ok) && probes[kRanks + peer].is(Outcome::Ok));
        ASSERT_EQ(in[peer], pattern(peer, round * kRanks + self, bytes));
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < kRanks; ++r) threads.emplace_back(rank, r);
  for (std::thread& thread : threads) thread.join();
}

TEST(InprocWire, WakeEndsASleepFromAnotherThread) {
  Transport transport(makeInprocWire(std::make_shared<InprocFabric>(), SteadyClock::instance()));
  std::atomic<int> wakes{0};
  std::thread waker([&] {
    for (int i = 0; i < 100; ++i) {
      while (wakes.load() < i) std::this_thread::yield();
      transport.wake();
    }
  });
  for (int i = 0; i < 100; ++i) {
    while (!transport.arm()) transport.progress();
    const Seconds before = transport.clock().now();
    transport.sleep(before + kPatience);
    ASSERT_LT(transport.clock().now(), before + kPatience / 2);
    wakes.fetch_add(1);
  }
  waker.join();
}

TEST(InprocWire, SleepEndsAtItsTime) {
  Transport transport(makeInprocWire(std::make_shared<InprocFabric>(), SteadyClock::instance()));
  const Seconds until = transport.clock().now() + 0.01;
  ASSERT_TRUE(transport.arm());
  transport.sleep(until);
  EXPECT_GE(transport.clock().now(), until - 1e-6);
  transport.sleep(0);  // long ago
}

// The sender takes its memory back and changes it while the receiver may be about to read it.
TEST(InprocWire, WithdrawalRacesTheFetch) {
  auto fabric = std::make_shared<InprocFabric>();
  Transport sender(makeInprocWire(fabric, SteadyClock::instance()));
  Transport receiver(makeInprocWire(fabric, SteadyClock::instance()));
  constexpr std::uint64_t kRounds = 200;
  constexpr std::size_t kBytes = 20'000;
  std::atomic<std::uint64_t> posted{0};
  std::thread other([&] {
    const PeerId peer = receiver.connect(sender.address());
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      std::vector<std::byte> got(kBytes);
      const Buffer to{got.data(), kBytes};
      Probe probe;
      receiver.recv(peer, {round, 0, 0, 0}, {&to, 1}, probe.completion());
      posted.store(round);
      drive(receiver, [&] { return probe.calls > 0; });
      ASSERT_TRUE(probe.outcome == Outcome::Cancelled || got == pattern(0, round, kBytes));
    }
  });
  const PeerId peer = sender.connect(receiver.address());
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    while (posted.load() < round) std::this_thread::yield();
    auto data = pattern(0, round, kBytes);
    const ConstBuffer from(data.data(), kBytes);
    Probe probe;
    sender.send(peer, {round, 0, 0, 0}, {}, {&from, 1}, probe.completion());
    for (std::uint64_t i = 0; i < round % 7; ++i) std::this_thread::yield();
    sender.cancel(round);
    drive(sender, [&] { return probe.calls > 0; });
    std::fill(data.begin(), data.end(), std::byte{0xee});
  }
  other.join();
}

TEST(InprocWire, RefusesForeignAddresses) {
  auto fabric = std::make_shared<InprocFabric>();
  auto wire = makeInprocWire(fabric, SteadyClock::instance());
  auto elsewhere = makeInprocWire(std::make_shared<InprocFabric>(), SteadyClock::instance());
  EXPECT_THROW(wire->connect(elsewhere->address()), Error);
  EXPECT_THROW(wire->connect(std::array<std::byte, 3>{}), Error);
  EXPECT_EQ(wire->connect(wire->address()), wire->connect(wire->address()));
}

}  // namespace
}  // namespace byway
