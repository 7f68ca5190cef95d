// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/bench/bench_cells.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "byway/base/error.h"
#include "byway/schedule/loads.h"
#include "byway/tools/bench/memory.h"

namespace byway::tools {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::SizeIs;

BenchSettings settings(Scenario scenario) {
  BenchSettings made;
  made.scenario = scenario;
  made.collectives = {Collective::AllReduce};
  made.active = {2};
  made.sizes = {4096};
  made.links = meshTopology(8, 20e6, 50e-6);
  made.memory = std::uint64_t{1} << 30;
  return made;
}

std::string refusal(const BenchSettings& wrong) {
  try {
    benchCells(wrong);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    return error.what();
  }
  return "accepted";
}

TEST(BenchCellsTest, OneForEachCollectiveGroupSizeAndSize) {
  BenchSettings wanted = settings(Scenario::Single);
  wanted.collectives = {Collective::AllReduce, Collective::AllToAll};
  wanted.active = {2, 3, 4};
  wanted.sizes = {4096, 65536};
  const auto cells = benchCells(wanted);
  EXPECT_THAT(cells, SizeIs(12));
  EXPECT_THAT(cells, Each(Field(&DemoCell::groups, SizeIs(1))));
  EXPECT_EQ(cells[11].number, 11);
  EXPECT_EQ(cells[11].bytes(), 65536u);
}

TEST(BenchCellsTest, FusedNeedsTwoGroups) {
  BenchSettings wanted = settings(Scenario::Fused);
  wanted.active = {3, 5};
  const auto cells = benchCells(wanted);
  ASSERT_THAT(cells, SizeIs(1));
  EXPECT_THAT(cells[0].groups, SizeIs(2));
  wanted.active = {5};
  EXPECT_THAT(refusal(wanted), HasSubstr("two groups"));
}

TEST(BenchCellsTest, RatiosScaleTheLargestGroup) {
  BenchSettings wanted = settings(Scenario::Fused);
  wanted.ratios = {1, 2, 4, 3};
  EXPECT_THAT(benchCells(wanted)[0].counts, ElementsAre(256, 512, 1024, 768));
  wanted.ratios = {1, 2};
  EXPECT_THAT(refusal(wanted), HasSubstr("2 counts for 4 groups"));
  wanted.ratios = {1, 2, 4, 3000};
  EXPECT_THAT(refusal(wanted), HasSubstr("hold no element"));
}

TEST(BenchCellsTest, ParallelCallsStateHowManyThereAre) {
  BenchSettings wanted = settings(Scenario::Parallel);
  EXPECT_EQ(benchCells(wanted)[0].liveGroups, 4);
  wanted.groups = 1;
  EXPECT_EQ(benchCells(wanted)[0].liveGroups, 1);
  wanted.live = 0;
  EXPECT_EQ(benchCells(wanted)[0].liveGroups, 0);
  wanted.groups = 5;
  EXPECT_THAT(refusal(wanted), HasSubstr("5 groups of 2 do not fit 8 ranks"));
}

// A group's total is the larger buffer of a member: the count of allreduce, two segments of
// all-to-all.
TEST(BenchCellsTest, ProductionShapesAreNearTwelveGigabytes) {
  BenchSettings wanted = settings(Scenario::Fused);
  wanted.production = wanted.isVirtual = true;
  wanted.collectives = {Collective::AllReduce, Collective::AllToAll};
  const auto cells = benchCells(wanted);
  ASSERT_THAT(cells, SizeIs(4));
  EXPECT_EQ(cells[0].counts[2], 3'000'000'000u);
  EXPECT_EQ(cells[0].counts[0], 2'265'000'000u);
  EXPECT_EQ(cells[2].counts[2], 1'500'000'000u);
}

TEST(BenchCellsTest, ProductionShapesAreScaledToTheMemory) {
  BenchSettings wanted = settings(Scenario::Fused);
  wanted.production = true;
  for (const DemoCell& cell : benchCells(wanted)) {
    EXPECT_LE(bufferBytes(cell), wanted.memory * 8 / 10);
    EXPECT_GE(bufferBytes(cell), wanted.memory * 79 / 100);
    const auto largest =
        static_cast<double>(*std::max_element(cell.counts.begin(), cell.counts.end()));
    EXPECT_NEAR(static_cast<double>(cell.counts[3]) / largest, 0.934, 0.06);
  }
  wanted.scenario = Scenario::Single;
  EXPECT_THAT(refusal(wanted), HasSubstr("fused"));
}

// Input and output of four pairs, of which all-to-all has two segments each.
TEST(BenchMemoryTest, BuffersAreCountedBeforeTheyExist) {
  BenchSettings wanted = settings(Scenario::Fused);
  EXPECT_EQ(bufferBytes(benchCells(wanted)[0]), 8u * 2 * 4096);
  wanted.collectives = {Collective::AllToAll};
  EXPECT_EQ(bufferBytes(benchCells(wanted)[0]), 8u * 4 * 4096);
  wanted.scenario = Scenario::Single;
  EXPECT_EQ(bufferBytes(benchCells(wanted)[0]), 2u * 4 * 4096);
}

TEST(BenchMemoryTest, StageMemoryOfBothWaysIsCounted) {
  BenchSettings wanted = settings(Scenario::Single);
  wanted.sizes = {8 << 20};
  const DemoCell cell = benchCells(wanted)[0];
  const PlannedCell planned = planCell(cell, wanted.links);
  ASSERT_TRUE(planned.relayed);
  EXPECT_GT(memoryNeed(cell, planned), bufferBytes(cell));
  EXPECT_LE(memoryNeed(cell, planned), bufferBytes(cell) + 2 * 8 * kStageQuota);
  EXPECT_GT(availableMemory(), std::uint64_t{1} << 20);
}

}  // namespace
}  // namespace byway::tools
