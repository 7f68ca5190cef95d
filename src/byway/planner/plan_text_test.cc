// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/plan_text.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace byway {
namespace {

using testing::HasSubstr;

PlanRequest pair(std::uint64_t bytes) {
  PlanRequest request;
  request.ranks = 8;
  request.groups = {{{0, 1}, 0}};
  request.blockBytes = {bytes};
  return request;
}

TEST(PlanText, ExplainsTheChoice) {
  const auto mesh = parseTopology("mesh:8", 8);
  const auto request = pair(100'000'000);
  const auto result = plan(request, mesh);
  const auto text = explain(result, request, mesh);
  EXPECT_THAT(text, HasSubstr("allreduce of [0 1] among 8 ranks on mesh:8, 100 MB in 1 block\n"));
  EXPECT_THAT(text, HasSubstr("chosen   " + result.chosen->schedule().name));
  EXPECT_THAT(text, HasSubstr("times as fast"));
  EXPECT_THAT(text, HasSubstr("limit    285.7 us at least; the choice reaches 9"));
  EXPECT_THAT(text, HasSubstr("* " + result.chosen->schedule().name));
  EXPECT_THAT(text, HasSubstr("memory   "));
}

TEST(PlanText, ADirectChoiceIsCalledSo) {
  const auto host = hostTopology(8);
  const auto request = pair(8);
  const auto text = explain(plan(request, host), request, host);
  EXPECT_THAT(text, HasSubstr("direct   the same"));
  EXPECT_THAT(text, HasSubstr("among 8 ranks on host, 8 B in 1 block"));
}

TEST(PlanText, NoDirectScheduleWhereMembersHaveNoLink) {
  auto mesh = parseTopology("mesh:8", 8);
  mesh.links[0 * 8 + 1] = mesh.links[1 * 8 + 0] = 0;
  auto request = pair(100'000'000);
  for (const char* route : {"", "packing K=4"}) {
    request.force = route;
    const auto result = plan(request, mesh);
    EXPECT_THAT(explain(result, request, mesh), HasSubstr("direct   none")) << route;
    const auto json = nlohmann::json::parse(planToJson(result, request, mesh));
    EXPECT_TRUE(json["direct_route"].is_null());
    EXPECT_TRUE(json["direct_s"].is_null());
    EXPECT_EQ(json["same_plan"], false);
  }
}

TEST(PlanText, WorksForEveryCollectiveAndForNothing) {
  const auto mesh = parseTopology("mesh:4", 4);
  for (const auto collective :
       {Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter,
        Collective::AllToAll, Collective::Broadcast, Collective::Reduce, Collective::Scatter,
        Collective::Gather}) {
    for (const auto& groups : {std::vector<Group>{}, std::vector<Group>{{{3}, 0}},
                               std::vector<Group>{{{3, 0}, 1}, {{2, 1}, 0}}}) {
      PlanRequest request;
      request.collective = collective;
      request.ranks = 4;
      request.groups = groups;
      request.blockBytes.assign(makeShape(collective, 4, groups).blocks.size(), 1'000'000);
      const auto result = plan(request, mesh);
      EXPECT_THAT(explain(result, request, mesh), HasSubstr("chosen   "));
      const auto json = nlohmann::json::parse(planToJson(result, request, mesh));
      EXPECT_EQ(json["byway"], "plan");
    }
  }
}

TEST(PlanText, LimitIsLeftOutForUnequalBlocks) {
  const auto mesh = parseTopology("mesh:4", 4);
  PlanRequest request;
  request.collective = Collective::AllGather;
  request.ranks = 4;
  request.groups = {{{0, 1}, 0}};
  request.blockBytes = {100, 200};
  EXPECT_FALSE(limitOf(request, mesh).has_value());
  EXPECT_THAT(explain(plan(request, mesh), request, mesh), HasSubstr("not computed"));
  request.collective = Collective::AllToAll;
  request.blockBytes = {7, 100, 100, 9};  // what stays does not count
  EXPECT_NEAR(limitOf(request, mesh).value(), 100 / 50e9 / 3, 1e-15);
}

TEST(PlanText, JsonHasTheNumbers) {
  const auto mesh = parseTopology("mesh:8", 8);
  const auto request = pair(100'000'000);
  const auto result = plan(request, mesh);
  const auto json = nlohmann::json::parse(planToJson(result, request, mesh));
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["route"], result.chosen->schedule().name);
  EXPECT_EQ(json["same_plan"], false);
  EXPECT_DOUBLE_EQ(json["chosen_s"].get<double>(), result.predicted);
  EXPECT_NEAR(json["limit_s"].get<double>(), 1e8 / 50e9 / 7, 1e-12);
  EXPECT_EQ(json["phases"].size(), result.chosen->schedule().phases.size());
  EXPECT_EQ(json["considered"].size(), result.considered.size());
}

TEST(PlanText, DotHasAnArrowPerTransfer) {
  const auto mesh = parseTopology("mesh:8", 8);
  auto request = pair(1000);
  request.force = "S3 K=2";
  const auto result = plan(request, mesh);
  const auto dot = toDot(result.chosen->schedule());
  EXPECT_THAT(dot, testing::StartsWith("digraph \"S3 K=2\" {"));
  std::size_t arrows = 0;
  for (auto at = dot.find("%\""); at != std::string::npos; at = dot.find("%\"", at + 1)) ++arrows;
  EXPECT_EQ(arrows, result.chosen->schedule().transfers.size());
  EXPECT_EQ(std::count(dot.begin(), dot.end(), '{'), std::count(dot.begin(), dot.end(), '}'));
}

}  // namespace
}  // namespace byway
