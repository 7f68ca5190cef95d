// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/waiting_place.h"

#include <sched.h>

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "byway/base/cores.h"
#include "byway/transport/ucx/sanitizer_test_util.h"

namespace byway {
namespace {

std::vector<std::shared_ptr<Board>> joinedPair() {
  std::vector<std::shared_ptr<Board>> boards{Board::make(0, 2), Board::make(1, 2)};
  const std::vector<std::string> addresses{boards[0]->address(), boards[1]->address()};
  std::thread other([&] { boards[1]->join(addresses, 20); });
  boards[0]->join(addresses, 20);
  other.join();
  return boards;
}

std::vector<int> allowedCores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

// For the calling thread, until the end of the test's own thread.
void stayOn(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

TEST(WaitingPlace, IsSharedWhereAnotherRankWaitsOnTheSameCore) {
  if (const char* why = notWithThreadSanitizer()) GTEST_SKIP() << why;
  const auto boards = joinedPair();
  std::thread([&] {
    const std::vector<int> cores{allowedCores().front()};
    stayOn(cores);
    WaitingPlace mine, theirs;
    EXPECT_FALSE(mine.isShared(boards[0]));
    EXPECT_TRUE(theirs.isShared(boards[1]));
    EXPECT_TRUE(mine.isShared(boards[0]));
    theirs.leave();  // it sleeps, or works
    EXPECT_FALSE(mine.isShared(boards[0]));
    // There is no other core for it; it stays where it is.
    EXPECT_TRUE(theirs.isShared(boards[1]));
    theirs.stepAside();
    EXPECT_EQ(allowedCores(), cores);
    // The other rank has the place for itself meanwhile, so that not both go to the same core.
    EXPECT_FALSE(mine.isShared(boards[0]));
  }).join();
}

TEST(WaitingPlace, SteppingAsideLeavesTheAllowedCoresAsTheyWere) {
  if (const char* why = notWithThreadSanitizer()) GTEST_SKIP() << why;
  const auto before = allowedCores();
  std::thread([&] {
    EXPECT_EQ(moveToAnotherCore({}), before.size() > 1);
    EXPECT_EQ(allowedCores(), before);
    EXPECT_EQ(moveToAnotherCore(before), before.size() > 1);  // all taken: any but this one
    EXPECT_EQ(allowedCores(), before);
    stayOn({before.back()});
    EXPECT_FALSE(moveToAnotherCore({}));
    EXPECT_EQ(currentCore(), before.back());
  }).join();
}

}  // namespace
}  // namespace byway
