// SPDX-License-Identifier: BSD-3-Clause
// Rule V11, and what mapped phases mean for a rank's part.
#include "byway/schedule/mapped.h"

#include <gtest/gtest.h>

#include "byway/schedule/json.h"
#include "byway/schedule/schedule_test_util.h"
#include "byway/schedule/verify.h"

namespace byway {
namespace {

constexpr Piece kWholeBlock{0, 0, 0};

// Allreduce of two ranks: each reads the other's contribution where it lies.
struct Exchange {
  ScheduleBuilder builder{makeShape(Collective::AllReduce, 2, {{{0, 1}, 0}}), "exchange"};
  Piece slot[2];

  explicit Exchange(Protocol protocol = Protocol::Mapped) {
    for (int r = 0; r < 2; ++r) slot[r] = {0, 0, builder.newSlot(r)};
    builder.beginPhase(protocol);
    for (int r = 0; r < 2; ++r) {
      builder.transfer(builder.ref(Space::Input, r, kWholeBlock),
                       builder.ref(Space::Stage, 1 - r, slot[1 - r]));
    }
  }
  void sum(int rank) {
    const Ref own = builder.ref(Space::Input, rank, kWholeBlock);
    const Ref other = builder.ref(Space::Stage, rank, slot[rank]);
    const std::array inputs{rank == 0 ? own : other, rank == 0 ? other : own};
    builder.reduce(builder.ref(Space::Output, rank, kWholeBlock), inputs, 2);
  }
  Schedule finish() {
    for (int r = 0; r < 2; ++r) sum(r);
    return std::move(builder).finish();
  }
};

std::string firstOf(const Schedule& schedule, int rule) {
  for (const Violation& v : violations(schedule)) {
    if (v.rule == rule) return v.what;
  }
  return "";
}

TEST(V11, AnExchangeIsRight) {
  const auto verified = verify(Exchange().finish());
  EXPECT_TRUE(verified->isMapped());
  EXPECT_TRUE(verified->publishesCopies());
  const LocalProgram& local = verified->local(0);
  EXPECT_TRUE(local.slotUses.empty());
  EXPECT_TRUE(local.hearsAll);
  ASSERT_EQ(local.folded.size(), 1U);
  EXPECT_EQ(local.inputRecv.size(), 4U);
}

// In the schedule rank 1 receives from rank 0 before it sends.
TEST(LocalProgramOrder, WhatOthersWaitForComesFirst) {
  using Order = std::vector<std::uint32_t>;
  const auto exchange = verify(Exchange().finish());
  EXPECT_EQ(exchange->local(0).order, (Order{0, 1, 2}));
  EXPECT_EQ(exchange->local(1).order, (Order{1, 0, 2}));
  EXPECT_EQ(verify(Exchange(Protocol::Messages).finish())->local(1).order, Order{});
  // Two receives, two sends, of which the second comes between, and the copy of the own block.
  Schedule s = testing_util::allGather(3);
  for (Phase& phase : s.phases) phase.protocol = Protocol::Mapped;
  const auto gather = verify(s);
  const LocalProgram& local = gather->local(1);
  std::vector<LocalKind> kinds;
  for (const auto i : local.order) kinds.push_back(local.ops[i].kind);
  EXPECT_EQ(kinds, (std::vector{LocalKind::Send, LocalKind::Send, LocalKind::Copy, LocalKind::Recv,
                                LocalKind::Recv}));
}

TEST(V11, ASlotThatNoSumOfThePhaseReads) {
  Exchange exchange;
  exchange.sum(0);
  exchange.builder.beginPhase(Protocol::Mapped);
  exchange.sum(1);
  const std::string what = firstOf(std::move(exchange.builder).finish(), 11);
  EXPECT_NE(what.find("transfer 0 of mapped phase 0"), std::string::npos) << what;
}

TEST(V11, ASlotThatIsReadTwice) {
  Exchange exchange;
  exchange.sum(0);
  exchange.sum(0);
  exchange.sum(1);
  EXPECT_NE(firstOf(std::move(exchange.builder).finish(), 11), "");
}

TEST(V11, ASlotThatServesSomethingElseToo) {
  Exchange exchange;
  for (int r = 0; r < 2; ++r) exchange.sum(r);
  exchange.builder.beginPhase();
  exchange.builder.copy(exchange.builder.ref(Space::Stage, 0, exchange.slot[0]),
                        exchange.builder.ref(Space::Input, 0, kWholeBlock), false);
  const std::string what = firstOf(std::move(exchange.builder).finish(), 11);
  EXPECT_NE(what.find("slot 0 of rank 0"), std::string::npos) << what;
}

TEST(V11, TooManyPublications) {
  const int ranks = static_cast<int>(kMostPublications) + 2;
  Group all;
  for (int r = 0; r < ranks; ++r) all.ranks.push_back(r);
  const Shape shape = makeShape(Collective::Scatter, ranks, {all});
  ScheduleBuilder builder(shape, "scatter");
  builder.beginPhase(Protocol::Mapped);
  for (int r = 1; r < ranks; ++r) {
    const Piece piece{static_cast<std::uint32_t>(r), 0, 0};
    builder.transfer(builder.ref(Space::Input, 0, piece), builder.ref(Space::Output, r, piece));
  }
  builder.copy(builder.ref(Space::Output, 0, kWholeBlock),
               builder.ref(Space::Input, 0, kWholeBlock), true);
  const std::string what = firstOf(std::move(builder).finish(), 11);
  EXPECT_NE(what.find("rank 0 publishes 257 times"), std::string::npos) << what;
}

TEST(Mapped, TheProtocolIsPartOfTheScheduleAndOfItsForms) {
  const Schedule mapped = Exchange().finish();
  const Schedule sent = Exchange(Protocol::Messages).finish();
  EXPECT_NE(hashOf(mapped), hashOf(sent));
  EXPECT_NE(toText(mapped).find("phase 0, mapped"), std::string::npos);
  EXPECT_EQ(toText(sent).find("mapped"), std::string::npos);
  const std::string json = toJson(mapped);
  EXPECT_EQ(hashOf(scheduleFromJson(json, "test")), hashOf(mapped));
  std::string wrong = json;
  wrong.replace(wrong.find("\"mapped\""), 8, "\"shared\"");
  EXPECT_ANY_THROW(scheduleFromJson(wrong, "test"));
  EXPECT_FALSE(verify(sent)->isMapped());
  EXPECT_EQ(verify(sent)->local(0).slotUses.size(), 1U);
}

}  // namespace
}  // namespace byway
