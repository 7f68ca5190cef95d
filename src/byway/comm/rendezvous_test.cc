// SPDX-License-Identifier: BSD-3-Clause
#include "byway/comm/rendezvous.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "byway/base/error.h"

namespace byway {
namespace {

const Settings kSettings{{"topology", "host"}};
constexpr Seconds kLong = 30, kShort = 0.05;

class Rendezvous : public testing::Test {
 protected:
  Rendezvous() : folder_(testing::TempDir() + "byway-meet-" + std::to_string(::getpid())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  ~Rendezvous() override { std::filesystem::remove_all(folder_); }

  // What each of three ranks gets; the first of `ranks` leads.
  std::array<Meeting, 3> meetAll(const std::vector<int>& ranks) {
    std::array<Meeting, 3> meetings;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        FileStore store(folder_);
        meetings[static_cast<std::size_t>(rank)] =
            meet(store, "name", ranks, rank, "address " + std::to_string(rank), kSettings, kLong);
      });
    }
    for (auto& thread : threads) thread.join();
    return meetings;
  }

  std::size_t keys() const {
    using Files = std::filesystem::directory_iterator;
    return static_cast<std::size_t>(std::distance(Files(folder_), Files()));
  }

  const std::string folder_;
};

TEST_F(Rendezvous, NamesMayBeUsedAgainAndNothingIsLeft) {
  std::vector<std::uint64_t> ids;
  for (const std::vector<int>& ranks :
       {std::vector<int>{0, 1, 2}, {0, 1, 2}, {2, 0, 1}, {0, 1, 2}}) {
    const auto meetings = meetAll(ranks);
    for (const Meeting& meeting : meetings) {
      EXPECT_EQ(meeting.id, meetings[0].id);
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(meeting.addresses[i], "address " + std::to_string(ranks[i]));
      }
    }
    for (const std::uint64_t id : ids) EXPECT_NE(id, meetings[0].id);
    ids.push_back(meetings[0].id);
    EXPECT_EQ(keys(), 0U);
  }
}

TEST_F(Rendezvous, WhoComesAloneNamesTheOthersAndLeavesNothing) {
  FileStore store(folder_);
  for (const auto& [self, missing] : {std::pair{0, "ranks 1, 2"}, {1, "rank 0"}}) {
    try {
      meet(store, "name", {0, 1, 2}, self, "early", kSettings, kShort);
      FAIL() << "met nobody";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Timeout);
      EXPECT_NE(std::string(error.what()).find(missing), std::string::npos) << error.what();
    }
    EXPECT_EQ(keys(), 0U);
  }
  EXPECT_EQ(meetAll({0, 1, 2})[1].addresses[0], "address 0");  // not "early"
}

}  // namespace
}  // namespace byway
