// SPDX-License-Identifier: BSD-3-Clause
// The flight recorder and the trace of communicators; ranks as threads.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "byway/comm/threads_test_util.h"

namespace byway {
namespace {

using nlohmann::json;

// A variable for as long as it lives.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Setting() { ::unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
};

class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / "byway-test-XXXXXX").string()) {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }
  std::vector<std::string> files() const {
    std::vector<std::string> list;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      list.push_back(entry.path());
    }
    std::sort(list.begin(), list.end());
    return list;
  }

 private:
  std::string path_;
};

void sum(Communicator& comm, std::uint64_t count) {
  std::vector<float> data(count, 1.0F);
  comm.allReduce(regionOf(data), regionOf(data), count, DType::Float32).wait();
}

TEST(Recording, CallsAreKeptInOrder) {
  ThreadRanks world;
  world.run(3, {}, [](Communicator& comm) {
    sum(comm, 1000);
    std::vector<std::byte> data(10);
    if (comm.rank() == 0) comm.send(regionOf(data), DType::UInt8, 2, 9).wait();
    if (comm.rank() == 2) comm.recv(regionOf(data), DType::UInt8, 0, 9).wait();
    comm.barrier().wait();
    const json document = json::parse(comm.recordedCalls());
    EXPECT_EQ(document.at("byway"), "calls");
    EXPECT_EQ(document.at("rank"), comm.rank());
    const auto& calls = document.at("calls");
    ASSERT_EQ(calls.size(), comm.rank() == 1 ? 2U : 3U);
    EXPECT_THAT(calls[0].at("call").get<std::string>(),
                testing::StartsWith("allreduce of 1000 float32 (sum)"));
    EXPECT_EQ(calls[0].at("sequence"), 0);
    EXPECT_EQ(calls[0].at("bytes"), 4000);
    EXPECT_THAT(calls[0].at("route").get<std::string>(), testing::StartsWith("mapped"));
    const char* const second[] = {"send to rank 2, tag 9", "barrier", "recv from rank 0, tag 9"};
    EXPECT_EQ(calls[1].at("call"), second[comm.rank()]);
    EXPECT_EQ(calls.back().at("call"), "barrier");
    for (const auto& call : calls) {
      EXPECT_EQ(call.at("state"), "completed");
      EXPECT_LE(call.at("created_s"), call.at("started_s"));
      EXPECT_LE(call.at("started_s"), call.at("ended_s"));
    }
  });
}

TEST(Recording, TheNumberOfCallsIsASetting) {
  const Setting setting("BYWAY_RECORDER", "2");
  ThreadRanks world;
  world.run(2, {}, [](Communicator& comm) {
    for (std::uint64_t i = 1; i <= 5; ++i) sum(comm, i);
    const json document = json::parse(comm.recordedCalls());
    EXPECT_EQ(document.at("calls_made"), 5);
    ASSERT_EQ(document.at("calls").size(), 2U);
    EXPECT_EQ(document.at("calls")[0].at("sequence"), 3);
  });
}

TEST(Recording, BadSettingsAreErrors) {
  for (const auto& [name, value] :
       {std::pair{"BYWAY_RECORDER", "many"}, std::pair{"BYWAY_RECORDER", "-1"},
        std::pair{"BYWAY_RECORDER_DIR", "/nonexistent"},
        std::pair{"BYWAY_TRACE", "/nonexistent"}}) {
    const Setting setting(name, value);
    HashStore store;
    const Error error = errorOf([&] {
      Communicator::create(Endpoint::inproc(std::make_shared<InprocFabric>()), store, "x", {0}, 0);
    });
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    EXPECT_THAT(error.what(), testing::HasSubstr(name));
  }
}

TEST(Recording, AFailureLeavesAFileOnEachRank) {
  const Folder folder;
  const Setting setting("BYWAY_RECORDER_DIR", folder.path());
  ThreadRanks world;
  world.run(3, {}, [](Communicator& comm) {
    sum(comm, 8);
    // Rank 2 calls something else. Who calls last may have been told already.
    const Error error = errorOf([&] { sum(comm, comm.rank() == 2 ? 5 : 4); });
    EXPECT_TRUE(error.code() == ErrorCode::Mismatch || error.code() == ErrorCode::Broken);
  });
  const auto files = folder.files();
  ASSERT_EQ(files.size(), 3U);
  int failed = 0;
  for (const auto& file : files) {
    std::ifstream in(file);
    const json document = json::parse(in);
    const auto& calls = document.at("calls");
    ASSERT_GE(calls.size(), 1U);
    EXPECT_EQ(calls[0].at("state"), "completed");
    if (calls.size() == 1) continue;
    ++failed;
    EXPECT_EQ(calls[1].at("state"), "failed");
    EXPECT_EQ(calls[1].at("code"), "Mismatch");
    EXPECT_THAT(calls[1].at("error").get<std::string>(),
                testing::HasSubstr("called different things"));
  }
  EXPECT_GE(failed, 1);
}

TEST(Recording, ATraceHasEveryTransferOnBothSides) {
  const Folder folder;
  {
    const Setting setting("BYWAY_TRACE", folder.path());
    ThreadRanks world;
    world.run(4, {}, [](Communicator& comm) { sum(comm, 100'000); });
  }
  std::set<std::pair<int, int>> sent, received;
  const auto files = folder.files();
  ASSERT_EQ(files.size(), 4U);
  for (const auto& file : files) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    const json header = json::parse(line);
    int reduces = 0, calls = 0;
    while (std::getline(in, line)) {
      const json event = json::parse(line);
      const std::string kind = event.at("k");
      const int id = event.value("id", -1), peer = event.value("peer", -1);
      const int rank = header.at("rank");
      if (kind == "send") sent.emplace(id, peer);
      if (kind == "recv") received.emplace(id, rank);
      if (kind == "reduce") ++reduces;
      if (kind == "call") ++calls;
    }
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(reduces, 1);
  }
  EXPECT_EQ(sent.size(), 24U);  // reduce-scatter and all-gather, each between all pairs
  EXPECT_EQ(sent, received);
}

}  // namespace
}  // namespace byway
