// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/limits.h"

#include <cstddef>
#include <fstream>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "byway/base/error.h"
#include "byway/planner/flow_lp.h"

namespace byway {
namespace {

struct OracleRow {
  std::string name;
  LimitRequest request;
  Topology topology;
  double limit = 0;
  std::optional<double> direct;  // none: members that no links of their own join
};

// tests/oracle/limits.json, as tests/oracle/limits.py (another LP solver, nothing shared) wrote it.
std::vector<OracleRow> oracle() {
  std::ifstream file(BYWAY_LIMITS_JSON);
  std::vector<OracleRow> result;
  for (const auto& json : nlohmann::json::parse(file)) {
    OracleRow row;
    row.name = json["cell"].get<std::string>() + " " + json["collective"].get<std::string>();
    row.request.collective = parseCollective(json["collective"].get<std::string>()).value();
    for (const auto& ranks : json["groups"]) {
      row.request.groups.push_back({ranks.get<std::vector<int>>(), 0});
    }
    if (!json["counts"].is_null()) row.request.counts = json["counts"].get<std::vector<double>>();
    row.topology = meshTopology(json["n"].get<int>(), 1.0);
    for (const auto& link : json["capacities"]) {
      const auto n = static_cast<std::size_t>(row.topology.ranks);
      row.topology.links[link[0].get<std::size_t>() * n + link[1].get<std::size_t>()] =
          link[2].get<double>();
    }
    row.limit = json["limit"].get<double>();
    if (!json["direct"].is_null()) row.direct = json["direct"].get<double>();
    result.push_back(std::move(row));
  }
  return result;
}

constexpr double kTolerance = 1e-6;

// The LP as it stands, without the use of symmetries.
double unfolded(const LimitRequest& request, const Topology& topology) {
  const auto problem = limitProblem(request, topology);
  return problem.scale * flowLp(problem).minimum();
}

LimitRequest allReduce(std::vector<Group> groups) {
  LimitRequest request;
  request.groups = std::move(groups);
  return request;
}

TEST(Limits, EveryRowOfTheOracle) {
  const auto rows = oracle();
  EXPECT_EQ(rows.size(), 320U);
  for (auto row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_NEAR(fluidLimit(row.request, row.topology), row.limit, kTolerance);
    row.request.direct = true;
    if (row.direct) {
      EXPECT_NEAR(fluidLimit(row.request, row.topology), *row.direct, kTolerance);
    } else {
      EXPECT_THROW(fluidLimit(row.request, row.topology), Error);
    }
  }
}

TEST(FullLimits, EveryRowOfTheOracleWithoutSymmetries) {
  for (auto row : oracle()) {
    SCOPED_TRACE(row.name);
    EXPECT_NEAR(unfolded(row.request, row.topology), row.limit, kTolerance);
    row.request.direct = true;
    if (row.direct) {
      EXPECT_NEAR(unfolded(row.request, row.topology), *row.direct, kTolerance);
    }
  }
}

TEST(Limits, FoldingChangesNothingOnIrregularCells) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> rate(1, 3);
  for (int round = 0; round < 4; ++round) {
    auto topology = meshTopology(5, 1.0);
    for (int a = 1; a < 5; ++a) topology.links[static_cast<std::size_t>(a)] = rate(random);
    const auto request = allReduce({{{0, 1, 2}, 0}});
    EXPECT_NEAR(fluidLimit(request, topology), unfolded(request, topology), 1e-9);
  }
}

TEST(Limits, RanksAndRatesOnlyScaleAndRename) {
  LimitRequest request;
  request.collective = Collective::Reduce;
  request.groups = {{{6, 3, 1}, 2}};
  request.counts = {2e6};
  EXPECT_NEAR(fluidLimit(request, meshTopology(8, 50e9)), 2e6 / 50e9 / 7, 1e-12);
}

TEST(Limits, RootIsThePositionInTheGroup) {
  auto topology = meshTopology(3, 1.0);
  topology.links = {0, 1, 1,  //
                    4, 0, 4,  //
                    1, 1, 0};
  LimitRequest request;
  request.collective = Collective::Broadcast;
  request.groups = {{{0, 1, 2}, 1}};
  EXPECT_NEAR(fluidLimit(request, topology), 1.0 / 5, 1e-9);
  request.groups[0].root = 0;
  EXPECT_NEAR(fluidLimit(request, topology), 1.0 / 2, 1e-9);
}

// schedules.md 1.5: on a switch helpers win nothing, but for allreduce of 3 or 4.
TEST(Limits, PortsBindOnASwitch) {
  const auto topology = switchTopology(8, 1.0);
  auto request = allReduce({{{0, 1, 2, 3}, 0}});
  EXPECT_NEAR(fluidLimit(request, topology), 1.0, 1e-9);
  request.direct = true;
  EXPECT_NEAR(fluidLimit(request, topology), 1.5, 1e-9);
  request = allReduce({{{0, 1}, 0}});
  EXPECT_NEAR(fluidLimit(request, topology), 1.0, 1e-9);
  request.collective = Collective::AllGather;
  request.groups = {{{0, 1, 2, 3}, 0}, {{4, 5, 6, 7}, 0}};
  EXPECT_NEAR(fluidLimit(request, topology), 3.0, 1e-9);
  request.collective = Collective::Reduce;
  EXPECT_NEAR(fluidLimit(request, topology), 1.0, 1e-9);
}

TEST(Limits, AReversedCollectiveUsesTheOtherPort) {
  auto topology = meshTopology(4, 1.0);
  topology.ingress[0] = 0.5;
  LimitRequest request;
  request.collective = Collective::Gather;
  request.groups = {{{0, 1, 2}, 0}};
  EXPECT_NEAR(fluidLimit(request, topology), 4.0, 1e-9);
  request.collective = Collective::Scatter;
  EXPECT_NEAR(fluidLimit(request, topology), 2.0 / 3, 1e-9);
}

TEST(Limits, OnASharedBusEveryCopyCosts) {
  auto topology = meshTopology(8, 10.0);
  topology.bus = 10.0;
  EXPECT_NEAR(fluidLimit(allReduce({{{0, 1}, 0}}), topology), 0.2, 1e-9);
  EXPECT_NEAR(fluidLimit(allReduce({{{0, 1, 2, 3}, 0}}), topology), 0.6, 1e-9);
}

TEST(Limits, NothingToMoveIsFree) {
  const auto topology = meshTopology(4, 1.0);
  EXPECT_EQ(fluidLimit(allReduce({}), topology), 0);
  EXPECT_EQ(fluidLimit(allReduce({{{2}, 0}}), topology), 0);
  auto request = allReduce({{{0, 1}, 0}});
  request.counts = {0};
  EXPECT_EQ(fluidLimit(request, topology), 0);
}

TEST(Limits, ErrorsSayWhichRanks) {
  auto topology = meshTopology(4, 1.0);
  const auto messageOf = [&](const LimitRequest& request) -> std::string {
    try {
      fluidLimit(request, topology);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(messageOf(allReduce({{{0, 4}, 0}})), testing::HasSubstr("rank 4 of 4 ranks"));
  EXPECT_THAT(messageOf(allReduce({{{0, 1}, 0}, {{1, 2}, 0}})),
              testing::HasSubstr("rank 1 stands twice"));
  EXPECT_THAT(messageOf(allReduce({{{0, 1}, 2}})), testing::HasSubstr("root 2"));
  auto request = allReduce({{{0, 1}, 0}});
  request.counts = {1, 1};
  EXPECT_THAT(messageOf(request), testing::HasSubstr("2 counts for 1 groups"));
  request.counts = {std::numeric_limits<double>::quiet_NaN()};
  EXPECT_THAT(messageOf(request), testing::HasSubstr("count nan"));
  for (int r = 0; r < 3; ++r) topology.links[static_cast<std::size_t>(r) * 4 + 3] = 0;
  EXPECT_THAT(messageOf(allReduce({{{1, 3}, 0}})), testing::HasSubstr("join ranks 1 and 3"));
  topology.links.assign(16, 0.0);
  EXPECT_THAT(messageOf(allReduce({{{1, 3}, 0}})), testing::HasSubstr("join ranks 1 and 3"));
}

}  // namespace
}  // namespace byway
