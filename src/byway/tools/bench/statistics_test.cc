// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/bench/statistics.h"

#include <numeric>

#include <gtest/gtest.h>

namespace byway::tools {
namespace {

std::vector<double> upTo(int n) {
  std::vector<double> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

// The orders are those of the tables of the sign test at 5 %, two-sided.
TEST(StatisticsTest, IntervalsOfTheMedian) {
  const struct {
    int values;
    double low, high;
  } kTable[] = {{1, 1, 1},   {5, 1, 5},   {6, 1, 6},    {8, 1, 8},   {9, 2, 8},
                {15, 4, 12}, {20, 6, 15}, {30, 10, 21}, {60, 22, 39}};
  for (const auto& one : kTable) {
    const Interval interval = medianInterval(upTo(one.values));
    EXPECT_EQ(interval.low, one.low) << one.values;
    EXPECT_EQ(interval.high, one.high) << one.values;
  }
}

TEST(StatisticsTest, OrderOfValuesDoesNotMatter) {
  const Interval interval = medianInterval({9, 1, 5, 3, 7, 2, 8, 6, 4});
  EXPECT_EQ(interval.low, 2);
  EXPECT_EQ(interval.high, 8);
}

TEST(StatisticsTest, PairsAreAddedUntilTheIntervalIsNarrow) {
  const StopRule rule;
  std::vector<double> steady(14, 2.0);
  EXPECT_TRUE(needsMore(steady, rule));
  steady.push_back(2.0);
  EXPECT_FALSE(needsMore(steady, rule));
  EXPECT_TRUE(isDecided(steady, rule));

  std::vector<double> wide;
  for (int i = 0; i < 59; ++i) wide.push_back(i % 2 == 0 ? 0.9 : 1.1);
  EXPECT_TRUE(needsMore(wide, rule));
  wide.push_back(1.1);
  EXPECT_FALSE(needsMore(wide, rule));  // there are no more
  EXPECT_FALSE(isDecided(wide, rule));
}

TEST(StatisticsTest, OutliersDoNotWidenTheInterval) {
  std::vector<double> values(12, 1.0);
  values.insert(values.end(), {0.1, 9.0, 9.0});
  EXPECT_TRUE(isDecided(values, StopRule{}));
}

}  // namespace
}  // namespace byway::tools
