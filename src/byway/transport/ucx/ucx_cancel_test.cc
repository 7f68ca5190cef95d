// SPDX-License-Identifier: BSD-3-Clause
// How transfers over UCX end before their time.
#include "byway/transport/ucx/test_pair.h"

namespace byway {
namespace {

using testing::pattern;
using testing::Probe;

constexpr MatchKey kKey{1, 2, 3, 0};
constexpr MatchKey kOther{9, 2, 3, 0};

class UcxCancel : public testing::UcxPair, public ::testing::WithParamInterface<std::size_t> {
 protected:
  void checkOtherWorks() {
    std::vector<std::byte> other(data.size());
    Probe sentOther, gotOther;
    send(kOther, data, sentOther);
    recv(kOther, other, gotOther);
    drive([&] { return sentOther.calls + gotOther.calls == 2; });
    EXPECT_TRUE(sentOther.is(Outcome::Ok) && gotOther.is(Outcome::Ok));
    EXPECT_EQ(other, data);
  }
  bool isEager() const { return GetParam() <= 8192; }

  std::vector<std::byte> data = pattern(0, 1, GetParam());
  std::vector<std::byte> got = std::vector<std::byte>(GetParam());
  Probe sent, received;
};
INSTANTIATE_TEST_SUITE_P(Ucx, UcxCancel, ::testing::Values(100, 4'000'000));

TEST_P(UcxCancel, ByTheReceiver) {
  send(kKey, data, sent);
  settle();
  t[1].cancel(1);
  drive([&] { return sent.calls == 1; });
  EXPECT_TRUE(sent.is(isEager() ? Outcome::Ok : Outcome::Cancelled));
  checkOtherWorks();
}

TEST_P(UcxCancel, ByTheReceiverWhileBytesMove) {
  recv(kKey, got, received);
  send(kKey, data, sent);
  while (sinks[1].data.empty()) {
    t[0].progress();
    t[1].progress();
  }
  t[1].cancel(1);
  drive([&] { return sent.calls + received.calls == 2; });
  checkOtherWorks();
}

TEST_P(UcxCancel, ByTheSender) {
  send(kKey, data, sent);
  settle();
  const Seconds before = SteadyClock::instance().now();
  t[0].cancel(1);
  drive([&] { return sent.calls == 1; });
  EXPECT_LT(SteadyClock::instance().now() - before, Wire::kWithdrawBound / 2);
  EXPECT_TRUE(sent.is(isEager() ? Outcome::Ok : Outcome::Cancelled));
  t[1].cancel(1);
  checkOtherWorks();
}

TEST_P(UcxCancel, ByTheSenderWhoseReceiverDoesNotRun) {
  recv(kKey, got, received);
  send(kKey, data, sent);
  t[0].cancel(1);
  const Seconds before = SteadyClock::instance().now();
  while (sent.calls == 0) {  // only this side runs
    if (!t[0].progress() && t[0].arm()) t[0].sleep(t[0].nextTimer());
  }
  const Seconds waited = SteadyClock::instance().now() - before;
  EXPECT_LT(waited, Wire::kWithdrawBound + 0.4);
  EXPECT_TRUE(sent.is(isEager() ? Outcome::Ok : Outcome::Cancelled));
  std::fill(data.begin(), data.end(), std::byte{0});
  drive([&] { return received.calls == 1; });
  EXPECT_TRUE(isEager() || received.is(Outcome::Cancelled));
  checkOtherWorks();
}

TEST_P(UcxCancel, CloseOnEitherSide) {
  Probe late, waiting;
  recv(kOther, got, waiting);
  send(kKey, data, sent);
  settle();
  t[1].close(1);
  EXPECT_TRUE(waiting.is(Outcome::Cancelled));
  drive([&] { return sent.calls == 1; });
  EXPECT_TRUE(sent.is(isEager() ? Outcome::Ok : Outcome::Cancelled));
  send(kOther, data, late);  // nobody is there to answer
  const Seconds before = SteadyClock::instance().now();
  t[0].close(1);
  EXPECT_LT(SteadyClock::instance().now() - before, 1.3);
  EXPECT_EQ(late.calls, 1);
}

}  // namespace
}  // namespace byway
