// SPDX-License-Identifier: BSD-3-Clause
// The pacing formula on a virtual clock, where it must hold to the last bit.
#include "byway/transport/paced/paced_wire.h"

#include "byway/transport/paced/port.h"
#include "byway/transport/test_world.h"

namespace byway {
namespace {

using testing::cut;
using testing::pattern;
using testing::Probe;
using testing::World;

constexpr double kRate = 10e6;

std::function<LinkRate(int, int)> allAt(double rate, Seconds latency = 0) {
  return [=](int, int) { return LinkRate{rate, latency}; };
}

// tick 0: the whole message at once; else in steps.
class PacedWire : public ::testing::TestWithParam<Seconds> {};
INSTANTIATE_TEST_SUITE_P(Ticks, PacedWire, ::testing::Values(0.0, 0.002, 0.0007));

TEST_P(PacedWire, OneFlowTakesBytesOverRate) {
  for (const std::size_t bytes : {1, 64, 8192, 8193, 1'000'003}) {
    World w(2, allAt(kRate), GetParam());
    const auto data = pattern(0, bytes, bytes);
    std::vector<std::byte> got(bytes);
    Probe sent, received;
    w.recv(1, 0, {1, 1, 1, 0}, got, received);
    w.send(0, 1, {1, 1, 1, 0}, data, sent);
    w.run();
    EXPECT_TRUE(received.is(Outcome::Ok));
    EXPECT_EQ(received.at, static_cast<double>(bytes) / kRate);
    EXPECT_EQ(sent.at, bytes <= 8192 ? 0 : received.at);  // the sender's memory is held as long
    EXPECT_EQ(got, data);
  }
}

TEST_P(PacedWire, LatencyIsPaidOnceAndRateForTheData) {
  World w(2, allAt(kRate, 5e-6), GetParam());
  const auto data = pattern(0, 1, 50'000);
  std::vector<std::byte> got(50'000);
  Probe sent, received;
  w.recv(1, 0, {1, 1, 1, 0}, got, received);
  w.clock.advanceTo(0.25);
  w.send(0, 1, {1, 1, 1, 0}, data, sent);
  w.run();
  EXPECT_EQ(received.at, (0.25 + 5e-6) + 50'000 / kRate);
  EXPECT_EQ(got, data);
}

TEST_P(PacedWire, AllLinksAreBusyAtOnce) {
  constexpr int kRanks = 8;
  World w(kRanks, allAt(kRate), GetParam());
  std::vector<std::vector<std::byte>> out, in;
  std::vector<Probe> sent(64), received(64);
  auto bytes = [](int from, int to) {
    return std::size_t{20'000} + 1000u * static_cast<unsigned>(from) + static_cast<unsigned>(to);
  };
  for (int from = 0; from < kRanks; ++from) {
    for (int to = 0; to < kRanks; ++to) {
      out.push_back(
          pattern(static_cast<unsigned>(from), static_cast<unsigned>(to), bytes(from, to)));
      in.emplace_back(bytes(from, to));
    }
  }
  for (int i = 0; i < 64; ++i) {
    const int from = i / 8, to = i % 8;
    if (from == to) continue;
    const MatchKey key{1, 1, 1, static_cast<std::uint32_t>(from)};
    w.recv(to, from, key, in[i], received[i]);
    w.send(from, to, key, out[i], sent[i]);
  }
  w.run();
  for (int i = 0; i < 64; ++i) {
    if (i / 8 == i % 8) continue;
    EXPECT_TRUE(received[i].is(Outcome::Ok));
    EXPECT_EQ(received[i].at, static_cast<double>(bytes(i / 8, i % 8)) / kRate);
    EXPECT_EQ(in[i], out[i]);
  }
}

TEST_P(PacedWire, ALinkServesInMatchingOrder) {
  World w(2, allAt(kRate), GetParam());
  constexpr int kCount = 5;
  std::vector<std::vector<std::byte>> out, in;
  std::vector<Probe> sent(kCount), received(kCount);
  const std::size_t sizes[kCount] = {30'000, 100, 9'000, 8192, 77};
  Seconds expected = 0;
  for (int i = 0; i < kCount; ++i) {
    out.push_back(pattern(0, static_cast<unsigned>(i), sizes[i]));
    in.emplace_back(sizes[i]);
    w.send(0, 1, {1, 1, static_cast<unsigned>(i), 0}, out[i], sent[i]);
  }
  w.settle();
  const int order[kCount] = {3, 0, 4, 1, 2};
  for (const int i : order) w.recv(1, 0, {1, 1, static_cast<unsigned>(i), 0}, in[i], received[i]);
  w.run();
  for (const int i : order) {
    expected += static_cast<double>(sizes[i]) / kRate;
    EXPECT_TRUE(received[i].is(Outcome::Ok));
    EXPECT_EQ(received[i].at, expected);
    EXPECT_EQ(in[i], out[i]);
  }
}

TEST_P(PacedWire, ALateReceiveStartsWhenItIsPosted) {
  for (const std::size_t bytes : {std::size_t{4'000}, std::size_t{40'000}}) {
    World w(2, allAt(kRate, 1e-3), GetParam());
    const auto data = pattern(0, 1, bytes);
    std::vector<std::byte> got(bytes);
    Probe sent, received;
    w.send(0, 1, {1, 1, 1, 0}, data, sent);
    w.runUntil(0.5);
    w.recv(1, 0, {1, 1, 1, 0}, got, received);
    w.run();
    EXPECT_EQ(received.at, 0.5 + static_cast<double>(bytes) / kRate);
    EXPECT_EQ(got, data);
  }
}

// The clock moves far past several ends before anybody looks: the next message starts where the
// formula says, not where it was noticed.
TEST_P(PacedWire, LateWakeUpsAreCaughtUp) {
  World w(2, allAt(kRate), GetParam());
  const auto first = pattern(0, 1, 100'000), second = pattern(0, 2, 500'000);
  std::vector<std::byte> gotFirst(100'000), gotSecond(500'000);
  Probe sent, sentToo, received, receivedToo;
  w.recv(1, 0, {1, 1, 1, 0}, gotFirst, received);
  w.recv(1, 0, {1, 1, 2, 0}, gotSecond, receivedToo);
  w.send(0, 1, {1, 1, 1, 0}, first, sent);
  w.send(0, 1, {1, 1, 2, 0}, second, sentToo);
  w.settle();
  w.clock.advanceTo(0.0305);  // the first ended at 0.01
  w.run();
  EXPECT_EQ(received.at, 0.0305);
  EXPECT_EQ(receivedToo.at, 100'000 / kRate + 500'000 / kRate);
  EXPECT_EQ(gotFirst, first);
  EXPECT_EQ(gotSecond, second);
}

TEST_P(PacedWire, PiecesAndPhantomsTakeTheSameTime) {
  World w(3, allAt(kRate), GetParam());
  const auto data = pattern(0, 1, 123'457);
  std::vector<std::byte> got(data.size());
  const auto from = cut<ConstBuffer>(data, {70, 4096, 33'000});
  const auto to = cut<Buffer>(got, {1, 50'000, 999});
  const ConstBuffer nothing(nullptr, data.size(), MemoryKind::Phantom);
  const Buffer nowhere{nullptr, data.size(), MemoryKind::Phantom, 0};
  Probe sent, sentNothing, received, receivedNothing;
  w.recv(1, 0, {1, 1, 1, 0}, to, received);
  w.recv(2, 0, {1, 1, 1, 0}, {&nowhere, 1}, receivedNothing);
  w.send(0, 1, {1, 1, 1, 0}, from, sent);
  w.send(0, 2, {1, 1, 1, 0}, {&nothing, 1}, sentNothing);
  w.run();
  EXPECT_EQ(received.at, 123'457 / kRate);
  EXPECT_EQ(receivedNothing.at, received.at);
  EXPECT_EQ(got, data);
}

TEST_P(PacedWire, ControlMessagesAndUnlimitedLinksAreNotPaced) {
  World w(
      2,
      [](int from, int) {
        return LinkRate{from == 0 ? kRate : 0, 0};
      },
      GetParam());
  const auto big = pattern(0, 1, 1'000'000);
  std::vector<std::byte> got(big.size()), back(big.size());
  Probe sent, sentBack, received, receivedBack;
  w.recv(1, 0, {1, 1, 1, 0}, got, received);
  w.recv(0, 1, {1, 1, 1, 1}, back, receivedBack);
  w.send(0, 1, {1, 1, 1, 0}, big, sent);
  w.send(1, 0, {1, 1, 1, 1}, big, sentBack);
  w[0].control(w.peer(1), std::span(big).first(10));
  w.settle();
  EXPECT_EQ(w.sinks[1].controls.size(), 1u);
  EXPECT_TRUE(receivedBack.is(Outcome::Ok));
  EXPECT_EQ(received.calls, 0);
  w.run();
  EXPECT_EQ(received.at, 0.1);
}

TEST_P(PacedWire, CancelDoesNotWaitForTheLink) {
  World w(2, allAt(kRate), GetParam());
  const auto data = pattern(0, 1, 10'000'000), next = pattern(0, 2, 100'000);
  std::vector<std::byte> got(data.size()), gotNext(next.size());
  Probe sent, received, sentNext, receivedNext;
  w.recv(1, 0, {1, 1, 1, 0}, got, received);
  w.send(0, 1, {1, 1, 1, 0}, data, sent);
  w.runUntil(0.1);
  w[1].cancel(1);
  w.settle();
  EXPECT_TRUE(received.is(Outcome::Cancelled) && sent.is(Outcome::Cancelled));
  // The link is free again at once.
  w.recv(1, 0, {2, 1, 1, 0}, gotNext, receivedNext);
  w.send(0, 1, {2, 1, 1, 0}, next, sentNext);
  w.run();
  EXPECT_EQ(receivedNext.at, 0.1 + 100'000 / kRate);
  EXPECT_EQ(gotNext, next);
}

TEST_P(PacedWire, WithdrawalEndsAMessageHalfWay) {
  World w(2, allAt(kRate), GetParam());
  auto data = std::make_unique<std::vector<std::byte>>(pattern(0, 1, 1'000'000));
  std::vector<std::byte> got(data->size());
  Probe sent, received;
  w.recv(1, 0, {1, 1, 1, 0}, got, received);
  w.send(0, 1, {1, 1, 1, 0}, *data, sent);
  w.runUntil(0.05);
  w[0].cancel(1);
  w[0].progress();
  EXPECT_TRUE(sent.is(Outcome::Cancelled));
  data.reset();  // the address sanitizer would see a read of it
  w.run();
  EXPECT_TRUE(received.is(Outcome::Cancelled));
}

TEST_P(PacedWire, AMissingLinkEndsBothSides) {
  World w(
      2,
      [](int from, int) {
        return LinkRate{kRate, 0, from == 0};
      },
      GetParam());
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{50'000}}) {
    const auto data = pattern(0, bytes, bytes);
    std::vector<std::byte> got(bytes), back(bytes);
    Probe sent, received, sentBack, receivedBack;
    const MatchKey there{1, bytes, 1, 0}, here{1, bytes, 1, 1};
    w.recv(1, 0, there, got, received);
    w.recv(0, 1, here, back, receivedBack);
    w.send(0, 1, there, data, sent);
    w.send(1, 0, here, data, sentBack);
    w.run();
    EXPECT_TRUE(received.is(Outcome::PeerLost));
    EXPECT_TRUE(sent.is(bytes <= 8192 ? Outcome::Ok : Outcome::PeerLost));  // eager: copied, done
    EXPECT_TRUE(receivedBack.is(Outcome::Ok) && back == data);
    EXPECT_NE(got, data);
  }
}

// A switch: every rank to every other, each port of one link's rate. Whoever begins where, all
// ports are busy without a gap, and nothing passes them faster.
TEST_P(PacedWire, PortsCarryTheirLimitAndNoMore) {
  constexpr int kRanks = 5;
  constexpr std::size_t kBytes = 40'000;
  World w(kRanks, allAt(kRate), GetParam(), {}, {kRate, kRate});
  std::vector<std::vector<std::byte>> out, in(25, std::vector<std::byte>(kBytes));
  std::vector<Probe> sent(25), received(25);
  for (int to = 0; to < kRanks; ++to) {
    for (int from = 0; from < kRanks; ++from) {
      const int i = from * kRanks + to;
      if (from == to) continue;
      w.recv(to, from, {1, 1, 1, static_cast<std::uint32_t>(from)}, in[i], received[i]);
    }
  }
  for (int from = 0; from < kRanks; ++from) {
    out.push_back(pattern(static_cast<unsigned>(from), 1, kBytes));
    for (int step = 1; step < kRanks; ++step) {
      const int to = (from + step) % kRanks, i = from * kRanks + to;
      w.send(from, to, {1, 1, 1, static_cast<std::uint32_t>(from)}, out[from], sent[i]);
    }
  }
  w.run();
  for (int i = 0; i < 25; ++i) {
    if (i / kRanks == i % kRanks) continue;
    const int step = (i % kRanks - i / kRanks + kRanks) % kRanks;
    EXPECT_TRUE(received[i].is(Outcome::Ok));
    EXPECT_NEAR(received[i].at, step * kBytes / kRate, 1e-9) << i;
    EXPECT_EQ(in[i], out[i / kRanks]);
  }
}

// All to one at once: its ingress is shared.
TEST_P(PacedWire, AnIngressIsSharedByItsLinks) {
  World w(4, allAt(kRate), GetParam(), {}, {0, 1.5 * kRate});
  const auto data = pattern(1, 1, 60'000);
  std::vector<std::vector<std::byte>> in(4, std::vector<std::byte>(data.size()));
  std::vector<Probe> sent(4), received(4);
  Seconds last = 0;
  for (std::uint32_t from = 1; from < 4; ++from) {
    w.recv(0, static_cast<int>(from), {1, 1, 1, from}, in[from], received[from]);
    w.send(static_cast<int>(from), 0, {1, 1, 1, from}, data, sent[from]);
  }
  w.run();
  for (int from = 1; from < 4; ++from) last = std::max(last, received[from].at);
  EXPECT_NEAR(last, (2 * 60'000 / 1.5 + 60'000) / kRate, 1e-9);
  EXPECT_EQ(in[3], data);
}

TEST(Port, LaterOnesFillTheGapsThatEarlierOnesLeft) {
  paced::Port port;
  const auto is = [](paced::Port::Span span, Seconds start, Seconds end) {
    return span.start == start && span.end == end;
  };
  EXPECT_TRUE(is(port.reserve(4, 2), 4, 6));
  EXPECT_TRUE(is(port.reserve(0, 1), 0, 1));
  EXPECT_TRUE(is(port.reserve(0.5, 4), 1, 7));  // 1 to 4, and 6 to 7
  EXPECT_TRUE(is(port.reserve(5, 1), 7, 8));
  EXPECT_TRUE(is(port.reserve(9, 0), 9, 9));
  EXPECT_TRUE(is(port.reserve(10, 1), 10, 11));
  EXPECT_TRUE(is(port.reserve(0, 3), 8, 12));
  port.forget(13);
  EXPECT_TRUE(is(port.reserve(13, 1), 13, 14));
}

// A header of another host carries a time that means nothing here.
TEST(PacedWireClock, ForeignTimesAreReplacedByTheArrival) {
  struct OtherHost final : Wire {
    explicit OtherHost(std::unique_ptr<Wire> wire) : inner(std::move(wire)) {}
    std::unique_ptr<Wire> inner;
    Address address() const override { return inner->address(); }
    PeerId connect(std::span<const std::byte> a) override { return inner->connect(a); }
    void setSink(WireSink* sink) override { inner->setSink(sink); }
    SendId send(PeerId peer, const WireHeader& header, std::span<const ConstBuffer> pieces,
                bool eager, Completion done) override {
      WireHeader foreign = header;
      foreign.sentAt += 1e6;
      return inner->send(peer, foreign, pieces, eager, done);
    }
    void withdraw(SendId id) override { inner->withdraw(id); }
    void fetch(PeerId p, const Arrival& a, std::uint64_t o, Buffer to, Completion d) override {
      inner->fetch(p, a, o, to, d);
    }
    void finish(PeerId p, const Arrival& a, Outcome o) override { inner->finish(p, a, o); }
    bool progress() override { return inner->progress(); }
    const Clock& clock() const override { return inner->clock(); }
    std::size_t eagerLimit() const override { return inner->eagerLimit(); }
    bool arm() override { return inner->arm(); }
    void sleep(Seconds until) override { inner->sleep(until); }
    void wake() override { inner->wake(); }
    void close(Seconds bound) override { inner->close(bound); }
  };
  World w(1, allAt(kRate), 0);
  Transport other(std::make_unique<OtherHost>(makeInprocWire(w.fabric, w.clock)));
  const PeerId to = other.connect(w[0].address());
  const auto data = pattern(1, 1, 100'000);
  std::vector<std::byte> got(data.size());
  const Buffer piece{got.data(), got.size()};
  const ConstBuffer from(data.data(), data.size());
  Probe sent, received;
  received.clock = &w.clock;
  w.clock.advanceTo(3);
  w[0].recv(w[0].connect(other.address()), {1, 1, 1, 1}, {&piece, 1}, received.completion());
  other.send(to, {1, 1, 1, 1}, {}, {&from, 1}, sent.completion());
  w.run();
  EXPECT_EQ(received.at, 3 + 100'000 / kRate);
  while (sent.calls == 0) other.progress();
}

}  // namespace
}  // namespace byway
