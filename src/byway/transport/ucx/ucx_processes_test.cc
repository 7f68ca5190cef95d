// SPDX-License-Identifier: BSD-3-Clause
// The UCX wire between processes: exchange, peers that die or stand still.
#include <csignal>

#include "byway/transport/test_world.h"
#include "byway/transport/ucx/sanitizer_test_util.h"
#include "byway/transport/ucx/test_processes.h"
#include "byway/transport/ucx/ucx_wire.h"

namespace byway {
namespace {

using testing::pattern;
using testing::Probe;
using testing::Processes;
using testing::Rank;

// Everybody sends to everybody, itself included, in sizes on both sides of the eager limit.
void exchangeBody(Rank& rank) {
  Transport transport(makeUcxWire());
  rank.connect(transport);
  constexpr std::size_t kSizes[] = {1, 8192, 8193, 300'001, 64};
  for (std::uint64_t round = 0; round < 20; ++round) {
    const std::size_t bytes = kSizes[round % 5] + round / 5;
    std::vector<std::vector<std::byte>> out, in;
    std::vector<Probe> probes(static_cast<std::size_t>(2 * rank.size));
    for (int peer = 0; peer < rank.size; ++peer) {
      const auto p = static_cast<std::uint32_t>(peer), self = static_cast<std::uint32_t>(rank.self);
      out.push_back(pattern(self, round * 8 + p, bytes));
      in.emplace_back(bytes);
      const ConstBuffer from(out.back().data(), bytes);
      transport.send(rank.peers[p], {1, round, p, self}, {}, {&from, 1},
                     probes[2 * p].completion());
    }
    for (int peer = rank.size - 1; peer >= 0; --peer) {
      const auto p = static_cast<std::uint32_t>(peer), self = static_cast<std::uint32_t>(rank.self);
      const Buffer to{in[p].data(), bytes};
      transport.recv(rank.peers[p], {1, round, self, p}, {&to, 1}, probes[2 * p + 1].completion());
    }
    rank.drive([&] { return transport.outstanding(1) == 0; });
    for (std::uint32_t p = 0; p < probes.size() / 2; ++p) {
      BYWAY_REQUIRE(rank, probes[2 * p].is(Outcome::Ok) && probes[2 * p + 1].is(Outcome::Ok));
      BYWAY_REQUIRE(rank, in[p] == pattern(p, round * 8 + static_cast<unsigned>(rank.self), bytes));
    }
  }
  rank.barrier();
  transport.close(2);
}

// Rank 1 has announced, is announced to, and does nothing any more.
void silentPeerBody(Rank& rank) {
  Transport transport(makeUcxWire());
  rank.connect(transport);
  constexpr std::size_t kBytes = 200'000;
  const auto data = pattern(static_cast<unsigned>(rank.self), 1, kBytes);
  std::vector<std::byte> got(kBytes), gotNever(kBytes);
  std::vector<Probe> sent(600);
  Probe received, never;
  const auto other = static_cast<std::uint32_t>(1 - rank.self);
  const auto self = static_cast<std::uint32_t>(rank.self);
  const PeerId peer = rank.peers[other];
  for (std::uint32_t i = 0; i < 300; ++i) {  // more than a queue holds
    const ConstBuffer large(data.data(), kBytes), small(data.data(), 500);
    transport.send(peer, {1, 1, 2 * i, self}, {}, {&large, 1}, sent[2 * i].completion());
    transport.send(peer, {1, 1, 2 * i + 1, self}, {}, {&small, 1}, sent[2 * i + 1].completion());
  }
  rank.drive([&] {
    int arrived = 0;
    transport.forEachUnexpected(1, 1, [&](const MatchKey&, const Stamp&) { ++arrived; });
    return arrived > 0;
  });
  rank.barrier();
  if (rank.self == 1) {
    rank.shared->flags[1].store(1);
    raise(SIGSTOP);
    return;
  }
  rank.drive([&] { return rank.shared->flags[2].load() == 1; });  // the parent has seen to it
  const Buffer first{got.data(), kBytes}, second{gotNever.data(), kBytes};
  transport.recv(peer, {1, 1, 0, other}, {&first, 1}, received.completion());
  transport.recv(peer, {1, 2, 0, other}, {&second, 1}, never.completion());
  const Seconds start = SteadyClock::instance().now();
  while (received.calls == 0 && SteadyClock::instance().now() < start + 0.3) transport.progress();
  const bool isKilled = rank.argument == "killed";
  BYWAY_REQUIRE(rank, received.calls == 1);  // a stopped process can still be read
  BYWAY_REQUIRE(rank, isKilled ? received.outcome == Outcome::PeerLost
                               : received.is(Outcome::Ok) && got == pattern(1, 1, kBytes));
  const Seconds cancelled = SteadyClock::instance().now();
  transport.cancel(1);
  rank.drive([&] { return transport.outstanding(1) == 0; });
  BYWAY_REQUIRE(rank, never.is(isKilled ? Outcome::PeerLost : Outcome::Cancelled));
  BYWAY_REQUIRE(rank, SteadyClock::instance().now() - cancelled < 1.0);
  // The memory is ours again whatever the peer does.
  const Seconds closing = SteadyClock::instance().now();
  transport.close(0.5);
  BYWAY_REQUIRE(rank, SteadyClock::instance().now() - closing < 1.0);
}

// Nothing was cancelled: close() alone has to end everything within its bound.
void closeOnSilentPeerBody(Rank& rank) {
  Transport transport(makeUcxWire());
  rank.connect(transport);
  const auto data = pattern(0, 1, 200'000);
  std::vector<Probe> sent(400);
  rank.barrier();
  if (rank.self == 1) {
    rank.shared->flags[1].store(1);
    raise(SIGSTOP);
    return;
  }
  rank.drive([&] { return rank.shared->flags[2].load() == 1; });
  for (std::uint32_t i = 0; i < 400; ++i) {
    const ConstBuffer piece(data.data(), i % 2 == 0 ? 200'000 : 500);
    transport.send(rank.peers[1], {1, 1, i, 0}, {}, {&piece, 1}, sent[i].completion());
  }
  const Seconds closing = SteadyClock::instance().now();
  transport.close(0.2);
  BYWAY_REQUIRE(rank, SteadyClock::instance().now() - closing < 0.7);
  for (const Probe& probe : sent) BYWAY_REQUIRE(rank, probe.calls == 1);
}

const bool isRank = testing::runAsRank(
    {{"exchange", exchangeBody}, {"silent", silentPeerBody}, {"close", closeOnSilentPeerBody}});

TEST(UcxProcesses, ExchangeAmongEight) {
  if (const char* why = notWithSanitizers()) GTEST_SKIP() << why;
  ASSERT_FALSE(isRank);
  Processes ranks(8, "exchange");
  for (int r = 0; r < 8; ++r) EXPECT_EQ(ranks.wait(r), 0) << r;
}

class UcxSilentPeer : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(UcxProcesses, UcxSilentPeer,
                         ::testing::Combine(::testing::Values("silent", "close"),
                                            ::testing::Values("stopped", "killed")));

TEST_P(UcxSilentPeer, CancelAndCloseAreBounded) {
  if (const char* why = notWithSanitizers()) GTEST_SKIP() << why;
  const auto [body, how] = GetParam();
  Processes ranks(2, body, how);
  const Seconds deadline = SteadyClock::instance().now() + 30;
  while (ranks.shared().flags[1].load() == 0) {
    ASSERT_LT(SteadyClock::instance().now(), deadline);
    sched_yield();
  }
  if (std::string(how) == "killed") {
    ranks.kill(1);
  } else {
    ranks.waitStopped(1);
  }
  ranks.shared().flags[2].store(1);
  EXPECT_EQ(ranks.wait(0, 20), 0);
}

}  // namespace
}  // namespace byway
