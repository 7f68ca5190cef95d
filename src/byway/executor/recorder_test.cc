// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/recorder.h"

#include <unistd.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace byway {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Recorder, KeepsTheLastCalls) {
  Recorder recorder(3);
  for (std::uint64_t i = 0; i < 5; ++i) {
    CallRecord* const record = recorder.add();
    ASSERT_NE(record, nullptr);
    EXPECT_EQ(record->number, i);
    record->parts = 1;
    record->tag = static_cast<std::uint32_t>(100 + i);
  }
  EXPECT_EQ(recorder.find(1), nullptr);
  ASSERT_NE(recorder.find(2), nullptr);
  EXPECT_EQ(recorder.find(2)->tag, 102U);
  EXPECT_EQ(recorder.find(5), nullptr);
  const std::string json = recorder.toJson(7, 1, 2, 10);
  EXPECT_THAT(json, HasSubstr(R"("calls_made": 5)"));
  EXPECT_THAT(json, Not(HasSubstr("tag 101")));
  EXPECT_LT(json.find("tag 102"), json.find("tag 104"));
}

TEST(Recorder, TakesNoMemoryOnceItIsFull) {
  Recorder recorder(2);
  const CallRecord* const first = recorder.add();
  recorder.add();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(recorder.add(), first + i % 2);
}

TEST(Recorder, OfNoCallsKeepsNone) {
  Recorder recorder(0);
  EXPECT_EQ(recorder.add(), nullptr);
  EXPECT_EQ(recorder.find(0), nullptr);
  EXPECT_THAT(recorder.toJson(1, 0, 1, 0), HasSubstr(R"("calls_made": 1)"));
}

TEST(Recorder, LongTextIsCut) {
  CallRecord record;
  copyText(std::string(1000, 'x'), record.route);
  EXPECT_EQ(std::string(record.route.data()).size(), CallRecord::kRouteBytes - 1);
  copyText("S3", record.route);
  EXPECT_STREQ(record.route.data(), "S3");
}

TEST(Recorder, FilesAppearWholeOrNotAtAll) {
  std::string folder = (std::filesystem::temp_directory_path() / "byway-test-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  writeRecords(folder + "/calls.json", "{}");
  EXPECT_EQ(std::filesystem::file_size(folder + "/calls.json"), 2U);
  EXPECT_THROW(writeRecords(folder + "/none/calls.json", "{}"), Error);
  std::filesystem::remove(folder + "/calls.json");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace byway
