// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/inquiry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace byway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RankStanding waiting(std::vector<int> ranks) { return {Standing::Waiting, 8, std::move(ranks)}; }
const RankStanding kSilent{};
const RankStanding kNotEntered{Standing::NotEntered, 6, {}};
const RankStanding kComplete{Standing::Complete, 9, {}};
const RankStanding kLeft{Standing::Left, 3, {}};

TEST(Inquiry, ASilentRankIsNamed) {
  const auto found = findCulprits(std::vector{waiting({1}), waiting({2}), kSilent}, 0, true);
  EXPECT_THAT(found.ranks, ElementsAre(2));
  EXPECT_THAT(found.text, HasSubstr("rank 2 does not answer"));
}

TEST(Inquiry, RanksThatHaveNotEnteredOrLeftAreNamedTogether) {
  const auto found =
      findCulprits(std::vector{waiting({1}), kNotEntered, kLeft, kComplete}, 0, true);
  EXPECT_THAT(found.ranks, ElementsAre(1, 2));
  EXPECT_THAT(found.text, HasSubstr("rank 1 has not made this call (it made 6 so far)"));
  EXPECT_THAT(found.text, HasSubstr("rank 2 destroyed its communicator"));
}

TEST(Inquiry, TheEndOfTheChainIsNamed) {
  const auto found =
      findCulprits(std::vector{waiting({1}), waiting({2, 3}), waiting({}), kComplete}, 0, true);
  EXPECT_THAT(found.ranks, ElementsAre(2, 3));
  EXPECT_THAT(found.text, HasSubstr("rank 2 waits for nobody"));
  EXPECT_THAT(found.text, HasSubstr("rank 3 says that its part is over"));
}

TEST(Inquiry, OnlyChainsThatBeginAtTheAskingRankCount) {
  const auto found =
      findCulprits(std::vector{waiting({1}), waiting({}), waiting({3}), waiting({})}, 0, true);
  EXPECT_THAT(found.ranks, ElementsAre(1));
}

// 0 -> 1 <-> 2: the two are the end, 0 is not in the circle.
TEST(Inquiry, ACircleIsNamedAsOne) {
  const auto found = findCulprits(std::vector{waiting({1}), waiting({2}), waiting({1})}, 0, true);
  EXPECT_THAT(found.ranks, ElementsAre(1, 2));
  EXPECT_THAT(found.text, HasSubstr("ranks 1, 2 wait for each other"));
}

// 0 <-> 1 -> 2: what is not an end is not named.
TEST(Inquiry, ACircleThatWaitsForAnotherRankIsNot) {
  const auto found = findCulprits(std::vector{waiting({1}), waiting({0, 2}), waiting({})}, 0, true);
  EXPECT_THAT(found.ranks, ElementsAre(2));
}

TEST(Inquiry, AReceiveBlamesOnlyWhomItWaitsFor) {
  const std::vector standings{waiting({1}), waiting({2}), kNotEntered, kNotEntered, kSilent};
  const auto found = findCulprits(standings, 0, false);
  EXPECT_THAT(found.ranks, ElementsAre(2));
  EXPECT_THAT(found.text, HasSubstr("rank 2 has no call under way"));
}

TEST(Inquiry, ARankAloneIsAtWorkItself) {
  const auto found = findCulprits(std::vector{waiting({})}, 0, true);
  EXPECT_THAT(found.ranks, ElementsAre(0));
}

TEST(Inquiry, StandingsSurviveTheWire) {
  for (const RankStanding& s : {waiting({0, 7, 8, 4095}), kNotEntered, kComplete, kLeft}) {
    const auto back = decodeStanding(encode(s), 4096);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->standing, s.standing);
    EXPECT_EQ(back->calls, s.calls);
    EXPECT_EQ(back->waitsFor, s.waitsFor);
  }
}

TEST(Inquiry, MalformedStandingsAreRefused) {
  EXPECT_FALSE(decodeStanding("", 4));
  EXPECT_FALSE(decodeStanding(std::string(9, '\0'), 4)) << "nobody answers that it is silent";
  EXPECT_FALSE(decodeStanding(std::string(9, '\7'), 4));
  EXPECT_FALSE(decodeStanding(encode(waiting({4})), 4)) << "there is no rank 4 among 4";
  EXPECT_TRUE(decodeStanding(encode(waiting({3})), 4));
}

}  // namespace
}  // namespace byway
