// SPDX-License-Identifier: BSD-3-Clause
#include "byway/transport/transport.h"

#include <array>
#include <atomic>
#include <thread>

#include "byway/base/error.h"
#include "byway/base/log.h"
#include "byway/transport/test_world.h"

namespace byway {
namespace {

using testing::cut;
using testing::pattern;
using testing::Probe;
using testing::World;

TEST(Transport, MatchesByKeyWhateverTheOrder) {
  World w(2);
  constexpr int kCount = 24;
  std::vector<std::vector<std::byte>> out(kCount), in(kCount);
  std::vector<Probe> sent(kCount), received(kCount);
  auto key = [](int i) {
    return MatchKey{1u + static_cast<unsigned>(i) % 2, static_cast<std::uint64_t>(i) % 3,
                    static_cast<std::uint32_t>(i), 0};
  };
  for (int i = 0; i < kCount; ++i) {
    out[i] = pattern(0, static_cast<std::uint64_t>(i), 100u + static_cast<unsigned>(i));
    in[i].resize(out[i].size());
  }
  // Half of the receives come before, half after the sends; both in orders of their own.
  for (int i = 0; i < kCount; i += 2)
    w.recv(1, 0, key((i * 7) % kCount), in[(i * 7) % kCount], received[(i * 7) % kCount]);
  for (int i = kCount - 1; i >= 0; --i) w.send(0, 1, key(i), out[i], sent[i]);
  w.settle();
  for (int i = 0; i < kCount; ++i) {
    if (i % 2 == 1) w.recv(1, 0, key(i), in[i], received[i]);
  }
  w.settle();
  for (int i = 0; i < kCount; ++i) {
    EXPECT_TRUE(received[i].is(Outcome::Ok)) << i;
    EXPECT_TRUE(sent[i].is(Outcome::Ok)) << i;
    EXPECT_EQ(in[i], out[i]) << i;
  }
  EXPECT_EQ(w.sinks[1].data.size(), static_cast<std::size_t>(kCount));
}

class Sizes : public ::testing::TestWithParam<std::tuple<std::size_t, bool>> {};

TEST_P(Sizes, ArriveWhole) {
  const auto [bytes, isPostedFirst] = GetParam();
  World w(2);
  const auto data = pattern(0, bytes, bytes);
  std::vector<std::byte> got(bytes);
  Probe sent, received;
  const MatchKey key{5, 6, 7, 0};
  if (isPostedFirst) w.recv(1, 0, key, got, received);
  w.send(0, 1, key, data, sent);
  w.settle();
  // An eager send is complete whatever the receiver does; an announced one is not.
  EXPECT_EQ(sent.calls, isPostedFirst || bytes <= 8192 ? 1 : 0);
  if (!isPostedFirst) w.recv(1, 0, key, got, received);
  w.settle();
  EXPECT_TRUE(sent.is(Outcome::Ok));
  EXPECT_TRUE(received.is(Outcome::Ok));
  EXPECT_EQ(got, data);
  EXPECT_EQ(w[0].outstanding(5) + w[1].outstanding(5), 0u);
}

INSTANTIATE_TEST_SUITE_P(Transport, Sizes,
                         ::testing::Combine(::testing::Values(1, 63, 8191, 8192, 8193,
                                                              (std::size_t{1} << 20) + 1),
                                            ::testing::Bool()));

TEST(Transport, PiecesOfBothSidesAreCutIndependently) {
  for (const std::size_t bytes : {std::size_t{777}, std::size_t{100'003}}) {
    World w(2);
    const auto data = pattern(0, 3, bytes);
    std::vector<std::byte> got(bytes);
    auto from = cut<ConstBuffer>(data, {1, 64, 3000, 17});
    auto to = cut<Buffer>(got, {100, 5, 2048});
    from.insert(from.begin() + 1, ConstBuffer{});  // pieces of no bytes are allowed
    to.insert(to.begin() + 1, Buffer{});
    Probe sent, received;
    w.send(0, 1, {1, 1, 1, 0}, from, sent);
    w.recv(1, 0, {1, 1, 1, 0}, to, received);
    w.settle();
    EXPECT_TRUE(sent.is(Outcome::Ok));
    EXPECT_TRUE(received.is(Outcome::Ok));
    EXPECT_EQ(got, data);
  }
}

TEST(Transport, UnequalSizesEndBothSidesAndWriteNothing) {
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{20'000}}) {
    for (const int difference : {-1, 1}) {
      World w(2);
      const auto data = pattern(0, 1, bytes);
      std::vector<std::byte> got(bytes + static_cast<std::size_t>(difference), std::byte{0x5a});
      const auto before = got;
      Probe sent, received;
      w.recv(1, 0, {1, 1, 1, 0}, got, received);
      w.send(0, 1, {1, 1, 1, 0}, data, sent);
      w.settle();
      EXPECT_TRUE(received.is(Outcome::WrongSize));
      // An eager send was complete before anybody could compare.
      EXPECT_TRUE(sent.is(bytes > 8192 ? Outcome::WrongSize : Outcome::Ok));
      EXPECT_EQ(got, before);
    }
  }
}

// B37: two long messages from one source, waited for in reverse order.
TEST(Transport, LongMessagesAreNotMixedUp) {
  World w(2);
  const std::vector<std::byte> ones(80'000, std::byte{1}), twos(80'000, std::byte{2});
  std::vector<std::byte> a(80'000), b(80'000);
  Probe sentA, sentB, gotA, gotB;
  const MatchKey key{1, 9, 0, 0};  // one key for both: first in, first out
  w.send(0, 1, key, ones, sentA);
  w.send(0, 1, key, twos, sentB);
  w.recv(1, 0, key, a, gotA);
  w.recv(1, 0, key, b, gotB);
  w.settle();
  EXPECT_TRUE(gotB.is(Outcome::Ok));
  EXPECT_TRUE(gotA.is(Outcome::Ok));
  EXPECT_EQ(a, ones);
  EXPECT_EQ(b, twos);
}

TEST(Transport, SendsToItself) {
  World w(1);
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{50'000}}) {
    const auto data = pattern(0, bytes, bytes);
    std::vector<std::byte> got(bytes);
    Probe sent, received;
    w.send(0, 0, {1, bytes, 0, 0}, data, sent);
    w.recv(0, 0, {1, bytes, 0, 0}, got, received);
    w.settle();
    EXPECT_TRUE(sent.is(Outcome::Ok) && received.is(Outcome::Ok));
    EXPECT_EQ(got, data);
  }
}

TEST(Transport, WithoutCreditMessagesAreAnnouncedAndNothingBlocks) {
  constexpr std::size_t kCount = 10'000, kBytes = 64;
  World w(2);
  std::vector<std::vector<std::byte>> out(kCount), in(kCount, std::vector<std::byte>(kBytes));
  std::vector<Probe> sent(kCount), received(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    out[i] = pattern(0, i, kBytes);
    w.send(0, 1, {1, i / 100, static_cast<std::uint32_t>(i), 0}, out[i], sent[i]);
  }
  w.settle();
  std::size_t eager = 0;
  for (const Probe& probe : sent) eager += probe.calls == 1 ? 1 : 0;
  EXPECT_EQ(eager, TransportOptions{}.eagerMessages);
  for (std::size_t i = kCount; i-- > 0;) {
    w.recv(1, 0, {1, i / 100, static_cast<std::uint32_t>(i), 0}, in[i], received[i]);
  }
  w.settle();
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(sent[i].is(Outcome::Ok)) << i;
    ASSERT_TRUE(received[i].is(Outcome::Ok)) << i;
    ASSERT_EQ(in[i], out[i]) << i;
  }
  // All credit is back: as many messages are eager again.
  std::vector<Probe> again(2 * eager);
  for (std::size_t i = 0; i < again.size(); ++i) {
    w.send(0, 1, {2, 0, static_cast<std::uint32_t>(i), 0}, out[i], again[i]);
  }
  w.settle();
  std::size_t eagerAgain = 0;
  for (const Probe& probe : again) eagerAgain += probe.calls == 1 ? 1 : 0;
  EXPECT_GE(eagerAgain, eager * 3 / 4);
  w[0].cancel(2);
  w.settle();
}

TEST(Transport, EagerBytesAreLimitedToo) {
  World w(2);
  const auto data = pattern(0, 0, 8192);
  std::vector<Probe> sent(200);
  for (std::uint32_t i = 0; i < 200; ++i) w.send(0, 1, {1, 0, i, 0}, data, sent[i]);
  w.settle();
  std::size_t eager = 0;
  for (const Probe& probe : sent) eager += static_cast<std::size_t>(probe.calls);
  EXPECT_EQ(eager, TransportOptions{}.eagerCredit / 8192);
  w[1].cancel(1);
  w.settle();
  for (const Probe& probe : sent) EXPECT_EQ(probe.calls, 1);
}

TEST(Transport, CreditComesBackWithTraffic) {
  World w(2);
  const auto data = pattern(0, 0, 512);
  std::vector<std::byte> got(512);
  for (std::uint64_t i = 0; i < 5000; ++i) {  // far more than the limit, never more than one open
    Probe sent, received;
    w.send(0, 1, {1, i, 0, 0}, data, sent);
    w[0].progress();
    ASSERT_EQ(sent.calls, 1) << "not eager at " << i;
    w.recv(1, 0, {1, i, 0, 0}, got, received);
    w.settle();
    ASSERT_TRUE(received.is(Outcome::Ok));
  }
}

TEST(Transport, PhantomsBehaveLikeBytesThatAreNotThere) {
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{1} << 30}) {
    World w(2);
    const ConstBuffer from(nullptr, bytes, MemoryKind::Phantom);
    const Buffer to{nullptr, bytes, MemoryKind::Phantom, 0};
    Probe sent, received;
    w.recv(1, 0, {1, 1, 1, 0}, {&to, 1}, received);
    w.send(0, 1, {1, 1, 1, 0}, {&from, 1}, sent);
    w.settle();
    EXPECT_TRUE(sent.is(Outcome::Ok) && received.is(Outcome::Ok));
  }
}

TEST(Transport, ControlMessagesArriveWithoutAMatch) {
  World w(2);
  const auto small = pattern(0, 1, 1), large = pattern(0, 2, Transport::kControlBytes);
  w[0].control(w.peer(1), small);
  w[0].control(w.peer(1), large);
  w[1].control(w.peer(1), small);  // to itself
  w.settle();
  EXPECT_EQ(w.sinks[1].controls.size(), 3u);
  EXPECT_THAT(w.sinks[1].controls, ::testing::Contains(large));
}

TEST(Transport, ListsWhatIsUnmatched) {
  World w(2);
  const auto data = pattern(0, 1, 10);
  std::vector<Probe> sent(4);
  for (std::uint32_t i = 0; i < 4; ++i) w.send(0, 1, {7, i / 3, i, 0}, data, sent[i]);
  w.settle();
  std::vector<std::uint32_t> transfers;
  w[1].forEachUnexpected(7, 0, [&](const MatchKey& key, const Stamp& stamp) {
    EXPECT_EQ(stamp[1], key.transfer);
    transfers.push_back(key.transfer);
  });
  EXPECT_THAT(transfers, ::testing::ElementsAre(0, 1, 2));
}

TEST(Transport, AMessageFromAnotherPeerIsDropped) {
  World w(3);
  int lines = 0;
  setLogHook([&](LogLevel, const std::string&) { ++lines; });
  const auto data = pattern(0, 1, 10'000);
  std::vector<std::byte> got(10'000);
  Probe wrong, early, right, received;
  w.send(2, 1, {1, 1, 1, 0}, data, early);  // claims to be rank 0, before the receive
  w.settle();
  w.recv(1, 0, {1, 1, 1, 0}, got, received);
  w.send(2, 1, {1, 1, 1, 0}, data, wrong);  // and after it
  w.settle();
  w.send(0, 1, {1, 1, 1, 0}, data, right);
  w.settle();
  setLogHook({});
  EXPECT_TRUE(early.is(Outcome::Cancelled) && wrong.is(Outcome::Cancelled));
  EXPECT_TRUE(right.is(Outcome::Ok) && received.is(Outcome::Ok));
  EXPECT_EQ(lines, 2);
}

}  // namespace
}  // namespace byway
