// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/bench/results_file.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "byway/base/error.h"
#include "byway/tools/files.h"

namespace byway::tools {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class ResultsFileTest : public testing::Test {
 protected:
  ResultsFileTest() {
    settings_.scenario = Scenario::Single;
    settings_.collectives = {Collective::AllReduce};
    settings_.active = {2};
    settings_.sizes = {4096, 65536, 1 << 20};
    settings_.links = meshTopology(8, 20e6, 50e-6);
    cells_ = benchCells(settings_);
  }

  Measured measured(std::size_t index) const {
    CellResult result;
    result.cell = cells_[index];
    result.times = {0.5, 3.5, 3.6, 0.6};
    result.plan = {static_cast<int>(index), "S3 K=4", "direct", 1, 2, 0.6, 3.6};
    for (const auto& [direct, chosen] : {std::pair{3.0, 1.0}, {4.0, 1.0}, {5.0, 1.0}}) {
      RunEvent run;
      run.checked = 10;
      run.duration = direct;
      result.direct.push_back(run);
      run.duration = chosen;
      result.chosen.push_back(run);
    }
    return measuredOf(result, 6, settings_.rule);
  }

  std::string path(const char* name) const { return folder_.path() + "/" + name; }

  TemporaryFolder folder_{"byway-results-test"};
  BenchSettings settings_;
  std::vector<DemoCell> cells_;
};

TEST_F(ResultsFileTest, RowsReadBackAsTheyWere) {
  const Measured before = measured(1);
  EXPECT_EQ(before.speedup, 4);
  EXPECT_EQ(before.interval.low, 3);
  EXPECT_FALSE(before.decided);
  const Measured after = measuredOf(rowOf(before), detailOf(before));
  EXPECT_EQ(rowOf(after), rowOf(before));
  EXPECT_EQ(detailOf(after), detailOf(before));
  EXPECT_EQ(after.key, keyOf(cells_[1]));
}

TEST_F(ResultsFileTest, AnUnfinishedRunGoesOn) {
  ResultsFile first(path("r.json"), settings_);
  first.add(measured(0));
  first.add(measured(1));
  ResultsFile second(path("r.json"), settings_);
  second.resumeUnfinished(cells_);
  EXPECT_THAT(second.cells(), SizeIs(2));
  EXPECT_TRUE(second.has(keyOf(cells_[1])));
  EXPECT_FALSE(second.has(keyOf(cells_[2])));
  second.finish({});
  // A finished one is measured anew, unless asked for.
  ResultsFile third(path("r.json"), settings_);
  third.resumeUnfinished(cells_);
  EXPECT_THAT(third.cells(), SizeIs(0));
  third.resume(path("r.json"), cells_);
  EXPECT_THAT(third.cells(), SizeIs(2));
}

TEST_F(ResultsFileTest, CellsThatAreNotWantedAreNotTaken) {
  ResultsFile first(path("r.json"), settings_);
  first.add(measured(0));
  ResultsFile second("", settings_);
  second.resume(path("r.json"), {cells_[1], cells_[2]});
  EXPECT_THAT(second.cells(), SizeIs(0));
}

TEST_F(ResultsFileTest, OtherSettingsAreNotMixed) {
  ResultsFile first(path("r.json"), settings_);
  first.add(measured(0));
  settings_.links = meshTopology(8, 10e6, 50e-6);
  ResultsFile other(path("r.json"), settings_);
  other.resumeUnfinished(cells_);
  EXPECT_THAT(other.cells(), SizeIs(0));
  try {
    other.resume(path("r.json"), cells_);
    FAIL() << "other settings were taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("other settings"));
  }
}

TEST_F(ResultsFileTest, WhatIsNoResultsFileIsAnErrorOnlyWhereItWasNamed) {
  writeFileAtomically(path("r.json"), "{\"byway\": \"results\"");
  ResultsFile results(path("r.json"), settings_);
  results.resumeUnfinished(cells_);
  EXPECT_THAT(results.cells(), SizeIs(0));
  EXPECT_THROW(results.resume(path("r.json"), cells_), Error);
  EXPECT_THROW(results.resume(path("none.json"), cells_), Error);
}

}  // namespace
}  // namespace byway::tools
