// SPDX-License-Identifier: BSD-3-Clause
#include "byway/transport/ucx/liveness.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace byway::ucx {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A process that does nothing, and, if asked, a child of it that outlives it.
class Victim {
 public:
  explicit Victim(bool forks = false) {
    std::array<int, 2> ready{};
    if (pipe(ready.data()) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      const pid_t child = forks ? fork() : -1;
      if (child != 0) (void)!write(ready[1], &child, sizeof child);
      for (;;) pause();
    }
    (void)!read(ready[0], &child_, sizeof child_);
    close(ready[0]);
    close(ready[1]);
  }
  ~Victim() {
    end();
    if (child_ > 0) kill(child_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  void end() const { kill(pid_, SIGKILL); }
  // Waits until it has ended, without asking for its status.
  void awaitEnd() const {
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1, child_ = -1;
};

class LivenessTest : public ::testing::TestWithParam<Liveness::Means> {};
INSTANTIATE_TEST_SUITE_P(Means, LivenessTest,
                         ::testing::Values(Liveness::Means::Descriptor, Liveness::Means::Proc));

TEST_P(LivenessTest, AnEndIsSeenOnceAlsoBeforeItsStatusIsTaken) {
  Liveness liveness(GetParam());
  const Victim first, second;
  ASSERT_TRUE(liveness.watch(3, first.pid(), startOf(first.pid())));
  ASSERT_TRUE(liveness.watch(4, second.pid(), startOf(second.pid())));
  EXPECT_THAT(liveness.look(1), IsEmpty());
  first.end();
  first.awaitEnd();
  EXPECT_THAT(liveness.look(2), ElementsAre(3));
  EXPECT_THAT(liveness.look(3), IsEmpty());
}

TEST_P(LivenessTest, AChildThatOutlivesItDoesNotHideIt) {
  Liveness liveness(GetParam());
  const Victim victim(true);
  ASSERT_TRUE(liveness.watch(0, victim.pid(), startOf(victim.pid())));
  victim.end();
  victim.awaitEnd();
  EXPECT_THAT(liveness.look(1), ElementsAre(0));
}

TEST_P(LivenessTest, ADescriptorCopiedIntoAChildOfThisProcessDoesNotMatter) {
  Liveness liveness(GetParam());
  const Victim victim;
  ASSERT_TRUE(liveness.watch(0, victim.pid(), startOf(victim.pid())));
  const Victim copies;  // of all descriptors of this process
  victim.end();
  victim.awaitEnd();
  EXPECT_THAT(liveness.look(1), ElementsAre(0));
  EXPECT_THAT(liveness.look(2), IsEmpty());
  pollfd events{liveness.events(), POLLIN, 0};
  EXPECT_EQ(poll(&events, 1, 0), 0);
}

TEST_P(LivenessTest, AProcessThatHasEndedOrIsAnotherOneIsNotWatched) {
  Liveness liveness(GetParam());
  const Victim victim;
  const std::uint64_t start = startOf(victim.pid());
  EXPECT_FALSE(liveness.watch(0, victim.pid(), start + 1)) << "an earlier process of that id";
  victim.end();
  victim.awaitEnd();
  EXPECT_FALSE(liveness.watch(0, victim.pid(), start));
  EXPECT_THAT(liveness.look(1), IsEmpty());
}

TEST(Liveness, OnlyADescriptorMakesTheEventReadable) {
  Liveness liveness;
  const Victim victim;
  ASSERT_TRUE(liveness.watch(0, victim.pid(), startOf(victim.pid())));
  EXPECT_EQ(liveness.nextLook(), kNever);
  pollfd events{liveness.events(), POLLIN, 0};
  EXPECT_EQ(poll(&events, 1, 0), 0);
  victim.end();
  EXPECT_EQ(poll(&events, 1, 10000), 1);
}

TEST(Liveness, WithoutDescriptorsItAsksForLooks) {
  Liveness liveness(Liveness::Means::Proc);
  const Victim victim;
  ASSERT_TRUE(liveness.watch(0, victim.pid(), startOf(victim.pid())));
  liveness.look(10);
  EXPECT_GT(liveness.nextLook(), 10);
  EXPECT_LE(liveness.nextLook(), 11);
}

}  // namespace
}  // namespace byway::ucx
