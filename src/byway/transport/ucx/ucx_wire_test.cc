// SPDX-License-Identifier: BSD-3-Clause
// The UCX wire within one process: two transports that one thread drives. Ends are
// ucx_cancel_test.cc's, processes ucx_processes_test.cc's.
#include "byway/transport/ucx/ucx_wire.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "byway/base/error.h"
#include "byway/base/log.h"
#include "byway/transport/ucx/protocol.h"
#include "byway/transport/ucx/test_pair.h"

namespace byway {
namespace {

using testing::cut;
using testing::pattern;
using testing::Probe;

constexpr MatchKey kKey{1, 2, 3, 0};

class UcxWire : public testing::UcxPair {};

TEST_F(UcxWire, SizesAroundTheLimits) {
  std::uint64_t sequence = 0;
  for (const bool isPostedFirst : {false, true}) {
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{63}, std::size_t{8191}, std::size_t{8192}, std::size_t{8193},
          std::size_t{100'000}, (std::size_t{1} << 20) + 1}) {
      const MatchKey key{1, ++sequence, 0, 0};
      const auto data = pattern(0, sequence, bytes);
      std::vector<std::byte> got(bytes);
      Probe sent, received;
      if (isPostedFirst) recv(key, got, received);
      send(key, data, sent);
      settle();
      EXPECT_EQ(sent.calls, isPostedFirst || bytes <= 8192 ? 1 : 0);
      if (!isPostedFirst) recv(key, got, received);
      drive([&] { return sent.calls + received.calls == 2; });
      EXPECT_TRUE(sent.is(Outcome::Ok) && received.is(Outcome::Ok)) << bytes;
      EXPECT_EQ(got, data) << bytes;
    }
  }
}

TEST_F(UcxWire, PiecesOfBothSides) {
  std::uint64_t sequence = 0;
  for (const std::size_t bytes : {std::size_t{500}, std::size_t{40'000}, std::size_t{300'000}}) {
    for (const std::size_t cutAt : {std::size_t{7}, std::size_t{900}, std::size_t{20'000}}) {
      const MatchKey key{1, ++sequence, 0, 0};  // with the small cuts far more than 64 pieces
      const auto data = pattern(0, sequence, bytes);
      std::vector<std::byte> got(bytes);
      const auto from = cut<ConstBuffer>(data, {cutAt, 3 * cutAt, 11});
      const auto to = cut<Buffer>(got, {2 * cutAt, 5, 4096});
      Probe sent, received;
      t[0].send(to1, key, {}, from, sent.completion());
      t[1].recv(from0, key, to, received.completion());
      drive([&] { return sent.calls + received.calls == 2; });
      EXPECT_TRUE(sent.is(Outcome::Ok) && received.is(Outcome::Ok));
      EXPECT_EQ(got, data);
    }
  }
}

TEST_F(UcxWire, UnequalSizes) {
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{20'000}}) {
    const MatchKey key{1, bytes, 0, 0};
    const auto data = pattern(0, 1, bytes);
    std::vector<std::byte> got(bytes + 1, std::byte{0x5a});
    const auto before = got;
    Probe sent, received;
    send(key, data, sent);
    recv(key, got, received);
    drive([&] { return sent.calls + received.calls == 2; });
    EXPECT_TRUE(received.is(Outcome::WrongSize));
    EXPECT_TRUE(sent.is(bytes > 8192 ? Outcome::WrongSize : Outcome::Ok));
    EXPECT_EQ(got, before);
  }
}

TEST_F(UcxWire, MorePiecesThanAnAnnouncementHolds) {
  for (std::uint64_t turn = 0; turn < 3; ++turn) {
    const std::size_t bytes = 300'000 + turn * 100'000;  // the third needs more staging memory
    const MatchKey key{1, turn, 7, 0};
    const auto data = pattern(0, turn, bytes);
    std::vector<std::byte> got(bytes);
    std::vector<ConstBuffer> from;
    std::vector<Buffer> to;
    for (std::size_t at = 0, i = 0; at < bytes; at += from.back().bytes, ++i) {
      from.emplace_back(data.data() + at, std::min(bytes - at, 1 + 97 * i % 5000));
    }
    ASSERT_GT(from.size(), ucx::kMaxPieces);
    for (std::size_t at = 0, i = 0; at < bytes; at += to.back().bytes, ++i) {
      to.push_back({got.data() + at, std::min(bytes - at, 1 + 89 * i % 7000)});
    }
    Probe sent, received;
    t[0].send(to1, key, {}, from, sent.completion());
    t[1].recv(from0, key, to, received.completion());
    drive([&] { return sent.calls + received.calls == 2; });
    EXPECT_TRUE(sent.is(Outcome::Ok) && received.is(Outcome::Ok));
    EXPECT_EQ(got, data);
  }
}

TEST_F(UcxWire, SendsToItself) {
  const PeerId self = t[0].connect(t[0].address());
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{50'000}}) {
    const auto data = pattern(0, bytes, bytes);
    std::vector<std::byte> got(bytes);
    const ConstBuffer from(data.data(), bytes);
    const Buffer to{got.data(), bytes};
    Probe sent, received;
    t[0].send(self, {1, bytes, 0, 0}, {}, {&from, 1}, sent.completion());
    t[0].recv(self, {1, bytes, 0, 0}, {&to, 1}, received.completion());
    drive([&] { return sent.calls + received.calls == 2; });
    EXPECT_TRUE(sent.is(Outcome::Ok) && received.is(Outcome::Ok));
    EXPECT_EQ(got, data);
  }
}

TEST_F(UcxWire, TenThousandUnmatchedMessages) {
  constexpr std::size_t kCount = 10'000, kBytes = 100;
  std::vector<std::vector<std::byte>> out(kCount), in(kCount, std::vector<std::byte>(kBytes));
  std::vector<Probe> sent(kCount), received(kCount);
  auto key = [](std::size_t i) { return MatchKey{1, i / 64, static_cast<std::uint32_t>(i), 0}; };
  for (std::size_t i = 0; i < kCount; ++i) {
    out[i] = pattern(0, i, kBytes);
    send(key(i), out[i], sent[i]);
  }
  drive([&] { return sinks[1].data.size() == kCount; });
  std::size_t eager = 0;
  for (const Probe& probe : sent) eager += static_cast<std::size_t>(probe.calls);
  EXPECT_EQ(eager, TransportOptions{}.eagerMessages);
  for (std::size_t i = kCount; i-- > 0;) recv(key(i), in[i], received[i]);
  drive([&] { return t[0].outstanding(1) + t[1].outstanding(1) == 0; });
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(sent[i].is(Outcome::Ok) && received[i].is(Outcome::Ok)) << i;
    ASSERT_EQ(in[i], out[i]) << i;
  }
}

TEST_F(UcxWire, PhantomsAndControl) {
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{1} << 40}) {
    const ConstBuffer from(nullptr, bytes, MemoryKind::Phantom);
    const Buffer to{nullptr, bytes, MemoryKind::Phantom, 0};
    Probe sent, received;
    t[0].send(to1, {1, bytes, 0, 0}, {}, {&from, 1}, sent.completion());
    t[1].recv(from0, {1, bytes, 0, 0}, {&to, 1}, received.completion());
    drive([&] { return sent.calls + received.calls == 2; });
    EXPECT_TRUE(sent.is(Outcome::Ok) && received.is(Outcome::Ok));
  }
  const auto large = pattern(0, 2, Transport::kControlBytes);
  {
    const auto gone = large;  // the bytes need not outlive the call
    t[0].control(to1, gone);
    t[1].control(from0, std::span(gone).first(1));
  }
  drive([&] { return sinks[0].controls.size() + sinks[1].controls.size() == 2; });
  EXPECT_EQ(sinks[1].controls[0], large);
  EXPECT_EQ(sinks[0].controls[0].size(), 1u);
}

TEST_F(UcxWire, AnswersWithoutHavingConnected) {
  Transport stranger(makeUcxWire());
  const PeerId there = stranger.connect(t[1].address());
  const auto data = pattern(2, 1, 50'000);
  const ConstBuffer piece(data.data(), data.size());
  Probe sent;
  stranger.send(there, kKey, {}, {&piece, 1}, sent.completion());
  t[1].cancel(1);
  drive([&] {
    stranger.progress();
    return sent.calls == 1;
  });
  EXPECT_TRUE(sent.is(Outcome::Cancelled));
  stranger.close(1);
}

TEST_F(UcxWire, WakeAndAlarmEndASleep) {
  std::atomic<int> wakes{0};
  std::thread waker([&] {
    for (int i = 0; i < 50; ++i) {
      while (wakes.load() < i) std::this_thread::yield();
      t[0].wake();
    }
  });
  for (int i = 0; i < 50; ++i) {
    while (!t[0].arm()) t[0].progress();
    t[0].sleep(SteadyClock::instance().now() + testing::kPatience);
    wakes.fetch_add(1);
  }
  waker.join();
  while (!t[0].arm()) t[0].progress();
  const Seconds until = SteadyClock::instance().now() + 0.02;
  while (SteadyClock::instance().now() < until - 0.01) t[0].sleep(until);
  t[0].sleep(until);
  EXPECT_GE(SteadyClock::instance().now(), until - 1e-6);
  t[0].sleep(until);  // past
}

TEST_F(UcxWire, AMessageEndsTheSleepOfItsReceiver) {
  std::vector<std::byte> got(100);
  Probe sent, received;
  recv(kKey, got, received);
  settle();
  std::thread sleeper([&] {
    const Seconds deadline = SteadyClock::instance().now() + testing::kPatience;
    while (received.calls == 0 && SteadyClock::instance().now() < deadline) {
      if (!t[1].progress() && t[1].arm()) t[1].sleep(deadline);
    }
  });
  const auto data = pattern(0, 1, 100);
  send(kKey, data, sent);
  while (sent.calls == 0) t[0].progress();
  sleeper.join();
  EXPECT_TRUE(received.is(Outcome::Ok));
  EXPECT_EQ(got, data);
}

TEST_F(UcxWire, RefusesFalseAddresses) {
  Address address = t[1].address();
  EXPECT_LE(address.size(), 4096u);
  EXPECT_EQ(t[0].connect(address), to1);
  EXPECT_THROW(t[0].connect(std::span(address).first(20)), Error);
  EXPECT_THROW(t[0].connect(std::span(address).first(address.size() - 1)), Error);
  address[8] = std::byte{0x7f};
  EXPECT_THROW(t[0].connect(address), Error);
}

TEST_F(UcxWire, DescriptorsAreClosedOnExec) {
  const auto data = pattern(0, 1, 100'000);
  std::vector<std::byte> got(data.size());
  Probe sent, received;
  send(kKey, data, sent);
  recv(kKey, got, received);
  drive([&] { return sent.calls + received.calls == 2; });
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone);
    const bool mayBeOurs = target.starts_with("socket:") || target.starts_with("anon_inode:") ||
                           target.find("ucx") != std::string::npos;
    if (gone || !mayBeOurs || openBefore.count(fd) != 0) continue;
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << fd << " " << target;
  }
}

// The child neither speaks for its parent nor takes its connections down.
TEST_F(UcxWire, AForkedChildIsInert) {
  const auto data = pattern(0, 1, 100'000);
  std::vector<std::byte> got(data.size());
  Probe sent, received;
  send(kKey, data, sent);
  settle();
  const pid_t child = fork();
  if (child == 0) {
    t[1].cancel(1);
    t[1].progress();
    t[0].~Transport();
    t[1].~Transport();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  recv(kKey, got, received);
  drive([&] { return sent.calls + received.calls == 2; });
  EXPECT_TRUE(sent.is(Outcome::Ok) && received.is(Outcome::Ok));
  EXPECT_EQ(got, data);
}

TEST(UcxLibrary, SaysWhichOneWasLoaded) {
  const UcxInfo info = ucxInfo();
  EXPECT_THAT(info.runtimeVersion, ::testing::StartsWith(info.compiledVersion));
  EXPECT_THAT(info.libraryPath, ::testing::HasSubstr("libucp"));
}

}  // namespace
}  // namespace byway
