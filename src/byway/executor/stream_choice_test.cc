// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/stream_choice.h"

#include <gtest/gtest.h>

namespace byway {
namespace {

// What each way costs where the ranks run.
struct Place {
  double cached, streamed;
};
constexpr Place kOneCore{60e-12, 40e-12}, kTwoCores{400e-12, 40e-12};

// Publishes so often; gives how many were written the way that `streamed` says.
int publish(StreamChoice& choice, const Place& place, int times, bool streamed) {
  int count = 0;
  for (int i = 0; i < times; ++i) {
    const auto turn = choice.next();
    count += turn.streamed == streamed ? 1 : 0;
    if (turn.isTimed) choice.learn(turn, turn.streamed ? place.streamed : place.cached);
  }
  return count;
}

constexpr int kSettled = 2 * StreamChoice::kLastTry;

TEST(StreamChoice, WritesPastTheCachesAtFirstAndIntoThemOnOneCore) {
  StreamChoice choice;
  EXPECT_TRUE(choice.streams());
  publish(choice, kOneCore, StreamChoice::kFirstTry + StreamChoice::kTry, true);
  EXPECT_FALSE(choice.streams());
  publish(choice, kOneCore, kSettled, true);
  EXPECT_FALSE(choice.streams());
}

TEST(StreamChoice, WhatIsFarWorseIsTriedEverLess) {
  StreamChoice choice;
  publish(choice, kTwoCores, kSettled, false);
  EXPECT_TRUE(choice.streams());
  constexpr int kMany = 100 * StreamChoice::kLastTry;
  const int tried = publish(choice, kTwoCores, kMany, false);
  EXPECT_GE(tried, 99 * static_cast<int>(StreamChoice::kTryLeast));
  EXPECT_LE(tried, 101 * static_cast<int>(StreamChoice::kTryLeast));
}

TEST(StreamChoice, FollowsWhereTheRanksRun) {
  StreamChoice choice;
  for (int i = 0; i < 3; ++i) {
    publish(choice, kTwoCores, kSettled, true);
    EXPECT_TRUE(choice.streams()) << i;
    publish(choice, kOneCore, kSettled, true);
    EXPECT_FALSE(choice.streams()) << i;
    // The way in use has become slow, which is seen at once.
    publish(choice, kTwoCores, 200, true);
    EXPECT_TRUE(choice.streams()) << i;
  }
}

// One that was interrupted costs a hundred times as much.
TEST(StreamChoice, AnInterruptionDecidesNothing) {
  StreamChoice choice;
  publish(choice, kTwoCores, kSettled, true);
  for (int i = 1; i < 20 * kSettled; ++i) {
    const auto turn = choice.next();
    if (!turn.isTimed) continue;
    const double cost = turn.streamed ? kTwoCores.streamed : kTwoCores.cached;
    choice.learn(turn, i % 97 == 0 ? 100 * cost : cost);
    ASSERT_TRUE(choice.streams()) << i;
  }
}

TEST(StreamChoice, EverySizeHasItsOwn) {
  StreamChoices choices;
  EXPECT_NE(&choices.of(4096), &choices.of(8192));
  EXPECT_EQ(&choices.of(4096), &choices.of(8191));
  EXPECT_EQ(&choices.of(std::uint64_t{1} << 40), &choices.of(std::uint64_t{1} << 50));
  EXPECT_NE(&choices.of(StreamChoices::kLeast), &choices.of(2 * StreamChoices::kLeast));
}

}  // namespace
}  // namespace byway
