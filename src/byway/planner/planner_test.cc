// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/planner.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "byway/base/error.h"
#include "byway/planner/candidate_ranking.h"
#include "byway/planner/limits.h"

namespace byway {
namespace {

using testing::HasSubstr;

constexpr Collective kCollectives[] = {
#define BYWAY_X(id, name, reduces) Collective::id,
    BYWAY_COLLECTIVES(BYWAY_X)
#undef BYWAY_X
};

PlanRequest request(Collective collective, int ranks, std::vector<Group> groups,
                    std::uint64_t bytes) {
  PlanRequest result;
  result.collective = collective;
  result.ranks = ranks;
  result.groups = std::move(groups);
  result.blockBytes.assign(makeShape(collective, ranks, result.groups).blocks.size(), bytes);
  return result;
}

std::vector<Group> groupsOf(int count, int size) {
  std::vector<Group> result;
  for (int g = 0; g < count; ++g) {
    Group group;
    for (int i = 0; i < size; ++i) group.ranks.push_back(g * size + i);
    result.push_back(std::move(group));
  }
  return result;
}

std::string refusal(const PlanRequest& wrong, const Topology& topology) {
  try {
    plan(wrong, topology);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    return error.what();
  }
  return "no error";
}

constexpr std::uint64_t kMega = 1000 * 1000;

TEST(Planner, LargeCallsOfAPairAreRelayedOnAMesh) {
  const auto mesh = parseTopology("mesh:8", 8);
  for (const auto collective : kCollectives) {
    SCOPED_TRACE(toString(collective));
    const auto result = plan(request(collective, 8, groupsOf(1, 2), 256 * kMega), mesh);
    EXPECT_TRUE(result.relayed());
    EXPECT_GT(result.directPredicted / result.predicted, 6.0);
    EXPECT_LT(result.directPredicted / result.predicted, 7.0);
  }
}

TEST(Planner, SmallCallsGoDirect) {
  const auto mesh = parseTopology("mesh:8", 8);
  for (const auto collective : kCollectives) {
    for (const std::uint64_t bytes : {0, 8, 4096, 100000}) {
      SCOPED_TRACE(std::string(toString(collective)) + " " + std::to_string(bytes));
      const auto result = plan(request(collective, 8, groupsOf(1, 2), bytes), mesh);
      EXPECT_FALSE(result.relayed());
      EXPECT_EQ(result.chosen, result.direct);
    }
  }
}

TEST(Planner, OnHostAndSwitchEverythingGoesDirect) {
  for (const char* name : {"host", "switch:8"}) {
    const auto topology = parseTopology(name, 8);
    for (const auto collective : kCollectives) {
      for (const int size : {2, 4, 8}) {
        const auto result = plan(request(collective, 8, groupsOf(8 / size, size), kMega), topology);
        EXPECT_FALSE(result.relayed()) << name << " " << toString(collective);
      }
    }
  }
}

// The first size, on a grid of 5 %, from which relay is taken.
double crossover(const Topology& mesh, int size, Collective collective) {
  for (double bytes = 1e4; bytes < 1e9; bytes *= 1.05) {
    const auto call = request(collective, 8, groupsOf(1, size), static_cast<std::uint64_t>(bytes));
    if (plan(call, mesh).relayed()) return bytes;
  }
  return 1e9;
}

// schedules.md section 3: at 50 GB/s, 0.08, 0.32 and 1.1 MB for 1, 4 and 14 us.
TEST(Planner, CrossoverIsNearTheTable) {
  const std::pair<const char*, double> rows[] = {
      {"mesh:8@50G,1", 0.08e6}, {"mesh:8@50G,4", 0.32e6}, {"mesh:8@50G,14", 1.1e6}};
  for (const auto& [name, bytes] : rows) {
    const auto mesh = parseTopology(name, 8);
    EXPECT_NEAR(crossover(mesh, 2, Collective::AllReduce) / bytes, 1.2, 0.4) << name;
    EXPECT_NEAR(crossover(mesh, 2, Collective::AllGather) / bytes, 1.2, 0.4) << name;
  }
}

TEST(Planner, NeverPredictedSlowerThanDirectNorFasterThanTheLimit) {
  const auto mesh = parseTopology("mesh:8", 8);
  for (const auto collective : kCollectives) {
    for (const auto& groups : {groupsOf(1, 2), groupsOf(1, 3), groupsOf(1, 4), groupsOf(4, 2),
                               groupsOf(2, 4), groupsOf(1, 7), groupsOf(1, 8)}) {
      LimitRequest limit;
      limit.collective = collective;
      limit.groups = groups;
      const double least = fluidLimit(limit, mesh);
      for (double bytes = 1e3; bytes < 1e10; bytes *= 10) {
        const auto result =
            plan(request(collective, 8, groups, static_cast<std::uint64_t>(bytes)), mesh);
        EXPECT_LE(result.predicted, result.directPredicted);
        EXPECT_GE(result.predicted, least * bytes);
      }
    }
  }
}

TEST(Planner, OrderAndNamesOfRanksDoNotMatter) {
  // Without a cost per message: the order in which a rank posts follows the others' numbers.
  const auto mesh = meshTopology(8, 50e9, 4e-6);
  const std::vector<Group> plain{{{0, 1, 2, 3}, 0}, {{4, 5, 6, 7}, 0}};
  const std::vector<Group> scrambled{{{6, 1, 4, 3}, 0}, {{7, 0, 2, 5}, 0}};
  for (const auto collective : kCollectives) {
    for (const std::uint64_t bytes : {kMega / 10, kMega, 100 * kMega}) {
      SCOPED_TRACE(toString(collective));
      const auto one = plan(request(collective, 8, plain, bytes), mesh);
      const auto other = plan(request(collective, 8, scrambled, bytes), mesh);
      EXPECT_EQ(one.chosen->schedule().name, other.chosen->schedule().name);
      EXPECT_EQ(one.direct->schedule().name, other.direct->schedule().name);
      EXPECT_NEAR(one.predicted / other.predicted, 1, 1e-6);
    }
  }
}

TEST(Planner, SameRequestSamePlan) {
  const auto mesh = parseTopology("mesh:8", 8);
  const auto call = request(Collective::AllReduce, 8, groupsOf(1, 4), 8 * kMega);
  EXPECT_EQ(plan(call, mesh).chosen->hash(), plan(call, mesh).chosen->hash());
}

TEST(Planner, IrregularCellsAreRelayedWhereItPays) {
  auto mesh = parseTopology("mesh:8", 8);
  const std::vector<Group> unlike{{{0, 1}, 0}, {{2, 3, 4}, 0}};
  EXPECT_TRUE(plan(request(Collective::AllReduce, 8, unlike, 64 * kMega), mesh).relayed());
  EXPECT_FALSE(plan(request(Collective::AllReduce, 8, unlike, 8), mesh).relayed());
  auto uneven = request(Collective::AllGather, 8, groupsOf(1, 2), 64 * kMega);
  uneven.blockBytes[1] /= 2;
  EXPECT_TRUE(plan(uneven, mesh).relayed());
  uneven.blockBytes = {0, 0};
  EXPECT_FALSE(plan(uneven, mesh).relayed());
  mesh.links[1] /= 2;
  EXPECT_TRUE(plan(request(Collective::AllReduce, 8, groupsOf(1, 2), 64 * kMega), mesh).relayed());
}

TEST(Planner, OnAHostNothingIrregularIsRelayed) {
  const std::vector<Group> unlike{{{0, 1}, 0}, {{2, 3, 4}, 0}};
  for (const auto collective : kCollectives) {
    const auto call = request(collective, 8, unlike, 64 * kMega);
    EXPECT_FALSE(plan(call, hostTopology(8)).relayed());
  }
}

// A = 4 of 8 ranks, blocks of 1 GiB: S4 keeps 2.2 GB on a helper, 67 rounds of 64 MB.
TEST(Planner, RoundsCountAndRoutesThatKeepLessAreTried) {
  const Topology mesh = meshTopology(8, 50e9, 50e-6);
  PlanRequest large = request(Collective::ReduceScatter, 8, {Group{{0, 1, 2, 3}}}, 1 << 30);
  const Plan unlimited = plan(large, mesh);
  large.stageQuota = std::uint64_t{64} << 20;
  large.onCallPath = true;
  const Plan called = plan(large, mesh);
  large.onCallPath = false;
  const Plan prepared = plan(large, mesh);
  EXPECT_GT(called.predicted, 1.1 * unlimited.predicted);
  EXPECT_LT(prepared.predicted, 0.9 * called.predicted);
  EXPECT_GE(prepared.predicted, unlimited.predicted);
  EXPECT_THAT(prepared.chosen->schedule().name, testing::StartsWith("packing"));
}

TEST(Planner, LiveGroupsHaveHalfOfTheHelpers) {
  const Topology mesh = meshTopology(8, 50e9, 10e-6);
  PlanRequest call = request(Collective::AllReduce, 8, {Group{{0, 1}}}, 256 << 20);
  const Plan alone = plan(call, mesh);
  EXPECT_GT(alone.directPredicted / alone.predicted, 6.5);
  call.liveGroups = 4;
  const Plan among = plan(call, mesh);
  EXPECT_LE(among.directPredicted / among.predicted, 4);
  EXPECT_GT(among.directPredicted / among.predicted, 3.6);
}

TEST(Planner, LonelyGroupsAreLocal) {
  const auto mesh = parseTopology("mesh:4", 4);
  for (const auto collective : kCollectives) {
    const auto alone = plan(request(collective, 4, {{{2}, 0}, {{0}, 0}}, kMega), mesh);
    EXPECT_TRUE(alone.chosen->schedule().transfers.empty());
    EXPECT_EQ(alone.predicted, 0);
    EXPECT_FALSE(alone.relayed());
    const auto beside = plan(request(collective, 4, {{{2}, 0}, {{0, 1}, 1}}, kMega), mesh);
    EXPECT_FALSE(beside.chosen->schedule().transfers.empty());
  }
  EXPECT_TRUE(plan(request(Collective::AllReduce, 4, {}, 0), mesh).considered.size() == 1);
  const auto one = parseTopology("mesh:1", 1);
  EXPECT_FALSE(plan(request(Collective::AllReduce, 1, {{{0}, 0}}, 8), one).relayed());
}

TEST(Planner, ANamedCandidateIsTaken) {
  const auto mesh = parseTopology("mesh:8", 8);
  auto call = request(Collective::AllReduce, 8, groupsOf(1, 4), 8);
  call.force = "S3 K=2";
  const auto relayed = plan(call, mesh);
  EXPECT_EQ(relayed.chosen->schedule().name, "S3 K=2");
  EXPECT_TRUE(relayed.relayed());
  call.blockBytes = {1000 * kMega};
  call.force = "direct";
  EXPECT_FALSE(plan(call, mesh).relayed());
  call.force = "S99";
  EXPECT_THAT(refusal(call, mesh), HasSubstr("\"S99\" is no schedule for this allreduce; there"));
}

TEST(Planner, ConsideredNamesEveryCandidateOnce) {
  const auto mesh = parseTopology("mesh:8", 8);
  const auto result = plan(request(Collective::AllReduce, 8, groupsOf(1, 2), 64 * kMega), mesh);
  std::vector<std::string> names;
  for (const auto& one : result.considered) names.push_back(one.name);
  auto unique = names;
  std::sort(unique.begin(), unique.end());
  EXPECT_EQ(std::unique(unique.begin(), unique.end()), unique.end());
  EXPECT_NE(std::find(names.begin(), names.end(), result.chosen->schedule().name), names.end());
  EXPECT_NE(std::find(names.begin(), names.end(), result.direct->schedule().name), names.end());
}

TEST(Planner, WrongRequestsAreNamed) {
  const auto mesh = parseTopology("mesh:4", 4);
  const auto call = [](std::vector<Group> groups) {
    return request(Collective::AllReduce, 4, std::move(groups), 8);
  };
  EXPECT_THAT(refusal(call({{{0, 1}, 0}, {{1, 2}, 0}}), mesh), HasSubstr("rank 1 stands in"));
  EXPECT_THAT(refusal(call({{{0, 0}, 0}}), mesh), HasSubstr("rank 0 stands in"));
  EXPECT_THAT(refusal(call({{{0, 4}, 0}}), mesh), HasSubstr("rank 4 of 4 ranks"));
  EXPECT_THAT(refusal(call({{{0, 1}, 2}}), mesh), HasSubstr("root 2"));
  EXPECT_THAT(refusal(call({{{}, 0}}), mesh), HasSubstr("no members"));
  EXPECT_THAT(refusal(call({{{0, 1}, 0}}), parseTopology("mesh:8", 8)), HasSubstr("4 ranks on"));
  auto wrong = call({{{0, 1}, 0}});
  wrong.blockBytes.push_back(8);
  EXPECT_THAT(refusal(wrong, mesh), HasSubstr("2 block sizes for 1 blocks"));
  wrong = call({{{0, 1}, 0}});
  wrong.partialWeight = 0;
  EXPECT_THAT(refusal(wrong, mesh), HasSubstr("partial weight"));
}

// Members without links of their own: the best schedule stands for the direct one.
TEST(Planner, AMissingLinkIsAvoidedOrNamed) {
  auto mesh = parseTopology("mesh:4", 4);
  mesh.links[1] = 0;
  auto call = request(Collective::AllReduce, 4, {{{0, 1}, 0}}, 8);
  const auto made = plan(call, mesh);
  EXPECT_FALSE(made.relayed());
  EXPECT_THAT(made.chosen->schedule().name, HasSubstr("packing"));
  for (const char* name : {"direct", "direct exchange P=1"}) {
    call.force = name;
    EXPECT_THAT(refusal(call, mesh), HasSubstr("no link from rank 0 to rank 1"));
  }
  call.force.clear();
  mesh.links[2] = mesh.links[3] = 0;
  EXPECT_THAT(refusal(call, mesh), HasSubstr("no links lead from rank 0 to rank 1"));
}

TEST(Planner, MembersMayForwardForEachOther) {
  auto mesh = parseTopology("mesh:8", 8);
  mesh.links[1] = 0;
  const auto made = plan(request(Collective::AllGather, 8, groupsOf(1, 4), 64 * kMega), mesh);
  EXPECT_THAT(made.direct->schedule().name, HasSubstr("direct packing"));
  EXPECT_TRUE(made.relayed());
}

TEST(Planner, PackingMayBeAskedForByName) {
  const auto mesh = parseTopology("mesh:8", 8);
  auto call = request(Collective::AllGather, 8, groupsOf(1, 2), 64 * kMega);
  call.force = "packing K=16";
  const auto made = plan(call, mesh);
  EXPECT_EQ(made.chosen->schedule().name, "packing K=16");
  EXPECT_NEAR(made.directPredicted / made.predicted, 7 - 6.0 / 16, 0.3);
}

// Adding up in another order must not decide; a real difference of 0.1 % must.
TEST(CandidateRanking, TiesGoToFewerMessages) {
  const auto best = [](std::vector<Judged> all) { return bestOf(all).index; };
  EXPECT_EQ(best({{0, 1.0, 9}, {1, 1.0 + 1e-15, 5}}), 1U);
  EXPECT_EQ(best({{0, 1.0, 9}, {1, 1.0009, 5}, {2, 1.0018, 1}}), 1U);
  EXPECT_EQ(best({{0, 1.0, 9}, {1, 1.002, 5}}), 0U);
  EXPECT_EQ(best({{0, 1.0, 5}, {1, 1.0, 5}}), 0U);
  EXPECT_EQ(coarse(0.1 + 0.2), coarse(0.3));
}

}  // namespace
}  // namespace byway
