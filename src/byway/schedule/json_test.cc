// SPDX-License-Identifier: BSD-3-Clause
#include "byway/schedule/json.h"

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "byway/base/error.h"
#include "byway/schedule/verify.h"

namespace byway {
namespace {

using testing::HasSubstr;

// Allreduce of two ranks: half by exchange, half summed at helper 2. Uses every kind of thing.
Schedule sample() {
  Shape shape = makeShape(Collective::AllReduce, 3, {{{0, 1}, 0}});
  shape.blocks[0].shares = {kWhole / 2, kWhole / 2};
  ScheduleBuilder builder(std::move(shape), "a \"sample\"");
  const Piece direct{0, 0, 0};
  const Piece relayed{0, 1, 0};
  for (int r = 0; r < 2; ++r) builder.newSlot(r);
  for (int i = 0; i < 3; ++i) builder.newSlot(2);
  builder.beginPhase();
  for (int r = 0; r < 2; ++r) {
    builder.transfer(builder.ref(Space::Input, r, direct),
                     builder.ref(Space::Stage, 1 - r, direct));
  }
  for (int r = 0; r < 2; ++r) {
    const Piece slot{0, 1, static_cast<std::uint32_t>(r)};
    builder.transfer(builder.ref(Space::Input, r, relayed), builder.ref(Space::Stage, 2, slot));
  }
  const Ref raw[] = {builder.ref(Space::Stage, 2, Piece{0, 1, 0}),
                     builder.ref(Space::Stage, 2, Piece{0, 1, 1})};
  builder.reduce(builder.ref(Space::Stage, 2, Piece{0, 1, 2}), raw, 2);
  for (int r = 0; r < 2; ++r) {
    const auto own = builder.ref(Space::Input, r, direct);
    const auto other = builder.ref(Space::Stage, r, direct);
    const Ref inputs[] = {r == 0 ? own : other, r == 0 ? other : own};
    builder.reduce(builder.ref(Space::Output, r, direct), inputs, 2);
  }
  builder.beginPhase();
  for (int r = 0; r < 2; ++r) {
    builder.transfer(builder.ref(Space::Stage, 2, Piece{0, 1, 2}),
                     builder.ref(Space::Output, r, relayed));
  }
  return std::move(builder).finish();
}

Schedule withCopiesAndPartials() {
  ScheduleBuilder builder(makeShape(Collective::AllGather, 2, {{{0}, 0}, {{1}, 0}}), "copies");
  for (int r = 0; r < 2; ++r) builder.newSlot(r);
  builder.beginPhase();
  const auto wide = [&](int rank) {
    return builder.ref(Space::Stage, rank, Piece{0, 0, 0}, Width::Accumulator);
  };
  builder.transfer(wide(0), wide(1));
  for (std::uint32_t r = 0; r < 2; ++r) {
    const auto rank = static_cast<int>(r);
    builder.copy(builder.ref(Space::Output, rank, Piece{r, 0, 0}),
                 builder.ref(Space::Input, rank, Piece{r, 0, 0}), r == 0);
  }
  return std::move(builder).finish();
}

TEST(ScheduleJson, RoundTripKeepsHashAndText) {
  for (const auto& schedule : {sample(), withCopiesAndPartials()}) {
    const auto text = toJson(schedule);
    const auto again = scheduleFromJson(text, "x");
    EXPECT_EQ(hashOf(again), hashOf(schedule));
    EXPECT_EQ(again.name, schedule.name);
    EXPECT_EQ(again.shape, schedule.shape);
    EXPECT_EQ(again.phases, schedule.phases);
    EXPECT_EQ(again.slots, schedule.slots);
    EXPECT_EQ(toJson(again), text);
    EXPECT_EQ(toText(again), toText(schedule));
  }
}

TEST(ScheduleJson, WhatWasReadVerifies) {
  EXPECT_EQ(verify(scheduleFromJson(toJson(sample()), "x"))->hash(), verify(sample())->hash());
}

TEST(ScheduleJson, AnEmptyScheduleIsOne) {
  const auto empty = ScheduleBuilder(makeShape(Collective::Gather, 1, {})).finish();
  EXPECT_EQ(hashOf(scheduleFromJson(toJson(empty), "x")), hashOf(empty));
}

// The error after replacing the first `from` in the sample's text by `to`.
std::string refusal(const std::string& from, const std::string& to) {
  auto text = toJson(sample());
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  try {
    scheduleFromJson(text, "plan.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    return error.what();
  }
  return "no error";
}

TEST(ScheduleJson, ErrorsNameThePlace) {
  EXPECT_THAT(refusal("\"allreduce\"", "\"allreducer\""),
              HasSubstr("plan.json: collective: \"allreducer\" is no collective"));
  EXPECT_THAT(refusal("\"ranks\": 3", "\"ranks\": 0"), HasSubstr("ranks: must be an integer from"));
  EXPECT_THAT(refusal("\"ranks\": 3", "\"ranks\": 1000000"), HasSubstr("from 1 to 4096"));
  EXPECT_THAT(refusal("\"ranks\": [0, 1]", "\"ranks\": [0, 3]"),
              HasSubstr("groups[0].ranks[1]: must be an integer from 0 to 2, not 3"));
  EXPECT_THAT(refusal("\"root\"", "\"boot\""), HasSubstr("groups[0]: unknown field \"boot\""));
  EXPECT_THAT(refusal(", \"root\": 0", ""), HasSubstr("groups[0]: field \"root\" is missing"));
  EXPECT_THAT(refusal("2147483648", "4294967297"),
              HasSubstr("blocks[0].shares[0]: must be an integer from 0 to 4294967296"));
  EXPECT_THAT(refusal("2147483648", "-1"), HasSubstr("blocks[0].shares[0]"));
  EXPECT_THAT(refusal("2147483648", "0.5"), HasSubstr("blocks[0].shares[0]"));
  EXPECT_THAT(refusal("\"input\"", "\"inputs\""),
              HasSubstr("phases[0].transfers[0].from.space: \"inputs\" is none of"));
  EXPECT_THAT(refusal("\"element\"", "\"wide\""), HasSubstr("transfers[0].from.width"));
  EXPECT_THAT(refusal("[[0, 0]]", "[[0, 0, 0]]"),
              HasSubstr("from.pieces[0]: has 3 elements, more than the 2 allowed"));
  EXPECT_THAT(refusal("[[0, 0, 0]]", "[[0, 0]]"),
              HasSubstr("to.pieces[0]: must be [block, share, slot]"));
  EXPECT_THAT(refusal("\"reduce\"", "\"sum\""),
              HasSubstr("phases[0].steps[0].kind: \"sum\" is neither reduce nor copy"));
  EXPECT_THAT(refusal("\"divisor\": 2", "\"divisor\": 0"), HasSubstr("steps[0].divisor"));
  EXPECT_THAT(refusal("\"slots\": [1, 1, 3]", "\"slots\": [1, 1]"),
              HasSubstr("slots: has 2 elements for 3 ranks"));
  EXPECT_THAT(refusal("\"version\": 1", "\"version\": 9"), HasSubstr("version 9"));
  EXPECT_THAT(refusal("\"phases\"", "phases"), HasSubstr("plan.json:6:"));
}

TEST(ScheduleJson, SizesAreBounded) {
  EXPECT_THAT(refusal("\"slots\": [1, 1, 3]", "\"slots\": [1048576, 1, 3]"),
              HasSubstr("slots: 1048580 slots, more than the 1048576 allowed"));
  EXPECT_THAT(refusal("\"blocks\": [", "\"blocks\": [{}, "),
              HasSubstr("blocks: has 2 elements; the groups have 1 blocks"));
  std::string shares = "0";
  for (int i = 0; i < 9000; ++i) shares += ", 0";
  EXPECT_THAT(refusal("\"ranks\": 3", "\"ranks\": 4096"), HasSubstr("slots: has 3 elements"));
  auto many = toJson(sample());
  many.replace(many.find("\"ranks\": 3"), 10, "\"ranks\": 4096");
  many.replace(many.find("2147483648"), 10, shares);
  EXPECT_THROW(scheduleFromJson(many, "x"), Error);
  EXPECT_THROW(scheduleFromJson(std::string(ScheduleBounds::kTextBytes + 1, ' '), "x"), Error);
}

// Damaged text is refused or read, and what was read is refused or verified: nothing else happens.
TEST(ScheduleJson, DamageIsAnErrorAndNothingWorse) {
  const auto whole = toJson(sample());
  std::mt19937 random(20);
  const std::string alphabet = "0123456789-.,:[]{}\"e \n";
  int read = 0;
  for (int round = 0; round < 3000; ++round) {
    auto text = whole;
    for (int i = 0; i < 1 + round % 3; ++i) {
      text[random() % text.size()] = alphabet[random() % alphabet.size()];
    }
    if (round % 7 == 0) text.resize(random() % text.size());
    try {
      auto schedule = scheduleFromJson(text, "x");
      ++read;
      verify(std::move(schedule));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::InvalidArgument) << error.what();
    }
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace byway
