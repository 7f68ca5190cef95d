// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/demo/results.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "byway/tools/demo/virtual_run.h"

namespace byway::tools {
namespace {

CellResult result(const std::vector<std::pair<double, double>>& runs) {
  CellResult r;
  r.cell = demoCells({})[0];
  r.times = {0.114, 0.8, 0.8, 0.118};
  for (const auto& [direct, chosen] : runs) {
    r.direct.push_back({0, Way::Direct, direct, 0, 0, 0, 10, 0});
    r.chosen.push_back({0, Way::Chosen, chosen, 0, 0, 0, 10, 0});
  }
  return r;
}

const Check& named(const std::vector<Check>& checks, const std::string& word) {
  for (const Check& check : checks) {
    if (check.name.find(word) != std::string::npos) return check;
  }
  throw std::runtime_error("no check " + word);
}

TEST(DemoResultsTest, TheSpeedupIsTheMedianOfThePairs) {
  const CellResult r = result({{0.8, 0.12}, {0.8, 0.2}, {0.9, 0.12}});
  EXPECT_DOUBLE_EQ(r.speedup(), 0.8 / 0.12);
  EXPECT_DOUBLE_EQ(r.interval().first, 4);
  EXPECT_DOUBLE_EQ(r.interval().second, 7.5);
  EXPECT_NEAR(r.limit(), 7.0, 0.02);
}

TEST(DemoResultsTest, ChecksSayWhatWasMissed) {
  DemoResults results;
  results.cells.push_back(result({{0.8, 0.12}}));
  for (const Check& check : results.checks()) EXPECT_TRUE(check.held) << check.name;
  results.cells.push_back(result({{0.8, 0.2}}));
  EXPECT_FALSE(named(results.checks(), "bars").held);
  results.cells = {result({{0.9, 0.12}})};
  EXPECT_FALSE(named(results.checks(), "direct takes").held);
  EXPECT_FALSE(named(results.checks(), "direct takes").failing);
  results.cells = {result({{0.8, 0.11}})};
  EXPECT_FALSE(named(results.checks(), "faster than").held);
  results.cells = {result({{0.8, 0.12}})};
  results.cells[0].chosen[0].wrong = 1;
  EXPECT_FALSE(named(results.checks(), "every value").held);
  EXPECT_FALSE(results.cells[0].verified());
}

TEST(DemoResultsTest, NothingComparedIsNotVerified) {
  CellResult r = result({{0.8, 0.12}});
  r.direct[0].checked = 0;
  EXPECT_FALSE(r.verified());
}

TEST(DemoResultsTest, RowsHaveTheKeysOfTheDesign) {
  DemoResults results;
  results.cells.push_back(result({{0.8, 0.12}}));
  const auto row = nlohmann::json::parse(results.toJson())["rows"][0];
  for (const char* key : {"collective", "active", "scenario", "groups", "ranks", "dtype", "bytes",
                          "direct_s", "chosen_s", "speedup", "limit", "of_limit", "route",
                          "same_plan", "peer", "peer_s", "samples", "interval", "verified"}) {
    EXPECT_TRUE(row.contains(key)) << key;
  }
}

TEST(DemoEventsTest, LinesReadBack) {
  const RunEvent run{7, Way::Chosen, 0.5, 0.001, 0.25, 3, 12345678901, 99};
  const auto event = eventOf(toLine(run)).run;
  ASSERT_TRUE(event);
  EXPECT_EQ(event->cell, 7);
  EXPECT_EQ(event->way, Way::Chosen);
  EXPECT_EQ(event->checked, 12345678901u);
  const PlanEvent plan{2, "S3 K=24", "direct", ~std::uint64_t{0}, 1, 0.1, 0.8};
  const auto other = eventOf(toLine(plan)).plan;
  ASSERT_TRUE(other);
  EXPECT_EQ(other->route, "S3 K=24");
  EXPECT_EQ(other->hash, ~std::uint64_t{0});
  EXPECT_FALSE(eventOf("hello").plan || eventOf("hello").run || eventOf("{}").run);
}

TEST(DemoVirtualTest, CellsReachTheirBarsWithRightValues) {
  DemoSettings settings;
  settings.cells = "^(allreduce A=2|all-to-all A=4 fused|reduce A=4)";
  DemoResults results;
  results.settings = settings;
  for (const DemoCell& cell : demoCells(settings)) {
    results.cells.push_back(runVirtually(cell, settings));
  }
  for (const Check& check : results.checks()) {
    EXPECT_TRUE(check.held) << check.name << ": " << (check.missed.empty() ? "" : check.missed[0]);
  }
}

}  // namespace
}  // namespace byway::tools
