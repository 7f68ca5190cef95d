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

std::vector<std::shared_ptr<Board>> joined(int ranks) {
  std::vector<std::shared_ptr<Board>> boards;
  std::vector<std::string> addresses;
  for (int r = 0; r < ranks; ++r) {
    boards.push_back(Board::make(r, ranks));
    addresses.push_back(boards.back()->address());
  }
  std::vector<std::thread> threads;
  for (auto& board : boards) threads.emplace_back([&] { board->join(addresses, 20); });
  for (auto& thread : threads) thread.join();
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

TEST(WaitingPlace, IsCrowdedWhereAnotherRankWaitsOnTheSameCore) {
  if (const char* why = notWithThreadSanitizer()) GTEST_SKIP() << why;
  const auto boards = joined(2);
  std::thread([&] {
    const std::vector<int> cores{allowedCores().front()};
    stayOn(cores);
    WaitingPlace mine, theirs;
    EXPECT_FALSE(mine.isCrowded(boards[0], 2));
    EXPECT_TRUE(theirs.isCrowded(boards[1], 2));
    EXPECT_TRUE(mine.isCrowded(boards[0], 2));
    theirs.leave();  // it sleeps, or works
    EXPECT_FALSE(mine.isCrowded(boards[0], 2));
    // There is no other core for it; it stays where it is.
    EXPECT_TRUE(theirs.isCrowded(boards[1], 2));
    theirs.stepAside();
    EXPECT_EQ(allowedCores(), cores);
    // The other rank has the place for itself meanwhile, so that not both go to the same core.
    EXPECT_FALSE(mine.isCrowded(boards[0], 2));
  }).join();
}

TEST(WaitingPlace, IsCrowdedWhereMoreThanItsPartOfTheRanksWere) {
  if (const char* why = notWithThreadSanitizer()) GTEST_SKIP() << why;
  const auto boards = joined(4);  // on two cores
  std::thread([&] {
    const int here = allowedCores().front(), elsewhere = here + 1;
    stayOn({here});
    WaitingPlace mine;
    boards[1]->setSeat({here, false});
    boards[2]->setSeat({elsewhere, true});
    EXPECT_FALSE(mine.isCrowded(boards[0], 2)) << "the last is nowhere yet";
    boards[3]->setSeat({elsewhere, false});
    EXPECT_FALSE(mine.isCrowded(boards[0], 2));
    boards[2]->setSeat({here, true});
    EXPECT_TRUE(mine.isCrowded(boards[0], 2));
    EXPECT_FALSE(mine.isCrowded(boards[0], 1)) << "there is no other";
    boards[3]->setSeat({here, false});
    EXPECT_TRUE(mine.isCrowded(boards[0], 2));
    EXPECT_TRUE(mine.isCrowded(boards[0], 4)) << "rank 2 waits here";
    boards[2]->setSeat({here, false});
    EXPECT_FALSE(mine.isCrowded(boards[0], 4)) << "only those that wait count";
    mine.leave();
    EXPECT_EQ(boards[1]->seatOf(0).core, here);
    EXPECT_FALSE(boards[1]->seatOf(0).waits);
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
