// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/demo/oracle.h"

#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include "byway/tools/values.h"

namespace byway::tools {
namespace {

DemoCell smallCell(Collective collective, DType dtype = DType::Float32) {
  DemoCell cell;
  cell.collective = collective;
  cell.ranks = 4;
  cell.dtype = dtype;
  cell.counts = {100};
  cell.groups = regularGroups(4, 2, false);
  return cell;
}

class OracleTest : public testing::TestWithParam<Collective> {};

TEST_P(OracleTest, OutputsThatWereNotWrittenAreAllWrong) {
  const DemoCell cell = smallCell(GetParam());
  for (int rank = 0; rank < 4; ++rank) {
    DemoBuffers buffers(cell, rank);
    buffers.prepare(3);
    EXPECT_EQ(buffers.countWrong(3), buffers.output().size() / sizeof(float)) << rank;
    if (!cell.hasMember(rank)) {
      EXPECT_TRUE(buffers.input().empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OracleTest,
                         testing::Values(Collective::AllReduce, Collective::AllGather,
                                         Collective::ReduceScatter, Collective::AllToAll,
                                         Collective::Broadcast, Collective::Reduce,
                                         Collective::Scatter, Collective::Gather));

// By hand: the one result that is right.
TEST(DemoOracleTest, AllReduceIsTheSum) {
  const DemoCell cell = smallCell(Collective::AllReduce);
  DemoBuffers a(cell, 0), b(cell, 1);
  a.prepare(0);
  b.prepare(0);
  for (std::size_t i = 0; i < cell.counts[0]; ++i) {
    float x = 0, y = 0;
    std::memcpy(&x, a.input().data() + i * sizeof x, sizeof x);
    std::memcpy(&y, b.input().data() + i * sizeof y, sizeof y);
    const float sum = x + y;
    std::memcpy(a.output().data() + i * sizeof sum, &sum, sizeof sum);
  }
  EXPECT_EQ(a.countWrong(0), 0u);
  EXPECT_EQ(a.countWrong(1), 200u) << "another call has other values, in input and output";
}

TEST(DemoOracleTest, AllToAllSwapsSegments) {
  const DemoCell cell = smallCell(Collective::AllToAll);
  DemoBuffers a(cell, 0), b(cell, 1);
  a.prepare(0);
  b.prepare(0);
  const std::size_t segment = cell.bytes();
  std::memcpy(b.output().data(), a.input().data() + segment, segment);
  std::memcpy(b.output().data() + segment, b.input().data() + segment, segment);
  EXPECT_EQ(b.countWrong(0), 0u);
}

TEST(DemoOracleTest, SeesOneWrongBitAndOneByteBeyond) {
  const DemoCell cell = smallCell(Collective::Broadcast, DType::BFloat16);
  DemoBuffers root(cell, 0), other(cell, 1);
  root.prepare(0);
  other.prepare(0);
  std::memcpy(other.output().data(), root.input().data(), cell.bytes());
  EXPECT_EQ(other.countWrong(0), 0u);
  other.output()[5] ^= std::byte{1};
  EXPECT_EQ(other.countWrong(0), 1u);
  *(other.output().data() + other.output().size()) ^= std::byte{1};
  EXPECT_EQ(other.countWrong(0), 2u);
}

TEST(DemoCellsTest, ListsEighteenRegularCells) {
  const auto cells = demoCells({});
  EXPECT_EQ(cells.size(), 18u);
  for (const DemoCell& cell : cells) EXPECT_GT(cell.bar, 1) << cell.name();
  DemoSettings all;
  all.all = true;
  EXPECT_GE(demoCells(all).size(), 40u);
}

TEST(DemoCellsTest, ACellKeepsItsNumberWhenOthersAreLeftOut) {
  DemoSettings settings;
  settings.cells = "^reduce A=4";
  const auto cells = demoCells(settings);
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(cells[0].number, 17);
  EXPECT_EQ(cells[0].bytes(), 24000000u);
}

TEST(DemoCellsTest, BarsAreForTheUsualLinks) {
  DemoSettings settings;
  settings.rate = 1e9;
  for (const DemoCell& cell : demoCells(settings)) EXPECT_EQ(cell.bar, 0);
}

}  // namespace
}  // namespace byway::tools
