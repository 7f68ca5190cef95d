// SPDX-License-Identifier: BSD-3-Clause
// Cancel, withdrawal and close in every state a transfer can be in.
#include "byway/transport/test_world.h"

namespace byway {
namespace {

using testing::pattern;
using testing::Probe;
using testing::World;

constexpr MatchKey kKey{1, 2, 3, 0};
constexpr MatchKey kOther{9, 2, 3, 0};

class Cancel : public ::testing::TestWithParam<std::size_t> {
 protected:
  // Another communicator between the same two ranks still works.
  void checkOtherWorks() {
    std::vector<std::byte> other(bytes);
    Probe sentOther, gotOther;
    w.send(0, 1, kOther, data, sentOther);
    w.recv(1, 0, kOther, other, gotOther);
    w.settle();
    EXPECT_TRUE(sentOther.is(Outcome::Ok) && gotOther.is(Outcome::Ok));
    EXPECT_EQ(other, data);
    for (int rank : {0, 1}) EXPECT_EQ(w[rank].outstanding(1), 0u);
  }
  bool isEager() const { return bytes <= 8192; }

  const std::size_t bytes = GetParam();
  World w{2};
  std::vector<std::byte> data = pattern(0, 1, bytes);
  std::vector<std::byte> got = std::vector<std::byte>(bytes);
  Probe sent, received;
};
INSTANTIATE_TEST_SUITE_P(Transport, Cancel, ::testing::Values(100, 100'000));

TEST_P(Cancel, PostedReceive) {
  w.recv(1, 0, kKey, got, received);
  EXPECT_EQ(w[1].outstanding(1), 1u);
  w[1].cancel(1);
  EXPECT_TRUE(received.is(Outcome::Cancelled));
  w[1].cancel(1);                  // twice is once
  w.send(0, 1, kKey, data, sent);  // late for a communicator that is gone
  w.settle();
  EXPECT_TRUE(sent.is(isEager() ? Outcome::Ok : Outcome::Cancelled));
  EXPECT_EQ(received.calls, 1);
  EXPECT_TRUE(w.sinks[1].data.empty());
  checkOtherWorks();
}

TEST_P(Cancel, UnexpectedMessage) {
  w.send(0, 1, kKey, data, sent);
  w.settle();
  w[1].cancel(1);
  w.settle();
  EXPECT_TRUE(sent.is(isEager() ? Outcome::Ok : Outcome::Cancelled));
  int unmatched = 0;
  w[1].forEachUnexpected(1, 2, [&](const MatchKey&, const Stamp&) { ++unmatched; });
  EXPECT_EQ(unmatched, 0);
  w.recv(1, 0, kKey, got, received);
  EXPECT_TRUE(received.is(Outcome::Cancelled));
  checkOtherWorks();
}

TEST_P(Cancel, ReceiveWhoseBytesAreMoving) {
  w.recv(1, 0, kKey, got, received);
  w.send(0, 1, kKey, data, sent);
  w[1].progress();  // matched; the fetch has not been reported yet
  w[1].cancel(1);
  w.settle();
  EXPECT_EQ(received.calls, 1);
  EXPECT_EQ(sent.calls, 1);
  checkOtherWorks();
}

TEST_P(Cancel, SendBeforeItArrived) {
  w.recv(1, 0, kKey, got, received);
  w.send(0, 1, kKey, data, sent);
  w[0].cancel(1);
  std::fill(data.begin(), data.end(), std::byte{0});
  w[0].progress();
  EXPECT_TRUE(sent.is(isEager() ? Outcome::Ok : Outcome::Cancelled));
  w.settle();
  EXPECT_TRUE(received.is(isEager() ? Outcome::Ok : Outcome::Cancelled));
  checkOtherWorks();
}

TEST_P(Cancel, SendThatWaitsForItsReceive) {
  w.send(0, 1, kKey, data, sent);
  w.settle();
  w[0].cancel(1);
  w.settle();
  EXPECT_TRUE(sent.is(isEager() ? Outcome::Ok : Outcome::Cancelled));
  int unmatched = 0;
  w[1].forEachUnexpected(1, 2, [&](const MatchKey&, const Stamp&) { ++unmatched; });
  EXPECT_EQ(unmatched, isEager() ? 1 : 0);
  w[1].cancel(1);
  w.settle();
  checkOtherWorks();
}

TEST_P(Cancel, SendAfterwards) {
  w[0].cancel(1);
  w.send(0, 1, kKey, data, sent);
  EXPECT_TRUE(sent.is(Outcome::Cancelled));
  w.settle();
  EXPECT_TRUE(w.sinks[1].data.empty());
  checkOtherWorks();
}

TEST_P(Cancel, FromTheSink) {
  struct Canceller final : ArrivalSink {
    Transport* transport = nullptr;
    bool dataArrived(const MatchKey& key, const Stamp&) override {
      transport->cancel(key.communicator);
      return true;
    }
    void controlArrived(PeerId, std::span<const std::byte>) override {}
  } canceller;
  canceller.transport = &w[1];
  w[1].setSink(&canceller);
  w.recv(1, 0, kKey, got, received);
  w.send(0, 1, kKey, data, sent);
  w.settle();
  EXPECT_TRUE(received.is(Outcome::Cancelled));
  EXPECT_TRUE(sent.is(isEager() ? Outcome::Ok : Outcome::Cancelled));
  w[1].setSink(nullptr);
  checkOtherWorks();
}

TEST_P(Cancel, AMessageThatTheSinkDoesNotWantIsNotReceived) {
  w.recv(1, 0, kKey, got, received);
  w.sinks[1].wanted = false;
  w.send(0, 1, kKey, data, sent);
  w.settle();
  w.sinks[1].wanted = true;
  EXPECT_EQ(received.calls, 0);
  EXPECT_EQ(w.sinks[1].data.size(), 1U);
  w[1].cancel(1);
  w.settle();
  EXPECT_TRUE(received.is(Outcome::Cancelled));
  EXPECT_TRUE(sent.is(isEager() ? Outcome::Ok : Outcome::Cancelled));
  checkOtherWorks();
}

TEST_P(Cancel, CloseOfTheReceiver) {
  w.send(0, 1, kKey, data, sent);
  w.settle();
  Probe neverSent, late;
  w.recv(1, 0, kOther, got, received);
  w[1].close(1);
  EXPECT_TRUE(received.is(Outcome::Cancelled));
  w.settle();
  EXPECT_TRUE(sent.is(isEager() ? Outcome::Ok : Outcome::Cancelled));
  w.send(0, 1, kOther, data, late);  // nobody is there any more
  w.settle();
  EXPECT_TRUE(late.is(Outcome::PeerLost));
  w.recv(1, 0, kKey, got, neverSent);
  EXPECT_TRUE(neverSent.is(Outcome::Cancelled));
}

TEST_P(Cancel, CloseOfTheSender) {
  Probe matched, sentMatched;
  std::vector<std::byte> gotMatched(bytes);
  w.send(0, 1, kKey, data, sent);
  w.recv(1, 0, kOther, gotMatched, matched);
  w.settle();
  w.send(0, 1, kOther, data, sentMatched);
  w[0].close(1);
  EXPECT_EQ(sent.calls, 1);
  EXPECT_EQ(sentMatched.calls, 1);
  std::fill(data.begin(), data.end(), std::byte{0});
  w.settle();
  EXPECT_EQ(matched.calls, 1);
  EXPECT_TRUE(matched.outcome == Outcome::Cancelled || isEager());
}

TEST(Transport, ClosesWithoutBeingAsked) {
  Probe sent, received;
  std::vector<std::byte> data = pattern(0, 1, 100'000), got(100'000);
  {
    World w(2);
    w.send(0, 1, kKey, data, sent);
    w.recv(1, 0, kOther, got, received);
    w.transports.clear();
  }
  EXPECT_TRUE(sent.is(Outcome::Cancelled) && received.is(Outcome::Cancelled));
}

TEST(Transport, ACancelledCommunicatorLeavesTheCreditOfItsEagerMessages) {
  World w(2);
  const auto data = pattern(0, 1, 100);
  for (std::uint64_t communicator = 1; communicator <= 20; ++communicator) {
    std::vector<Probe> sent(100);
    for (std::uint32_t i = 0; i < 100; ++i) w.send(0, 1, {communicator, 0, i, 0}, data, sent[i]);
    w[0].progress();
    for (const Probe& probe : sent) EXPECT_EQ(probe.calls, 1) << "not eager";
    w.settle();
    w[1].cancel(communicator);
    w.settle();
  }
}

}  // namespace
}  // namespace byway
