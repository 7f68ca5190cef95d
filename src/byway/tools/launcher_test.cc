// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/launcher.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "byway/tools/files.h"

namespace byway::tools {
namespace {

using testing::ElementsAre;

class LauncherTest : public testing::Test {
 protected:
  int run(int ranks, const std::string& script) {
    options_.ranks = ranks;
    options_.program = {"/bin/sh", "-c", script};
    options_.onLine = [this](int rank, Stream stream, std::string_view line) {
      (stream == Stream::Out ? out_ : err_)[rank].emplace_back(line);
    };
    begin_ = std::chrono::steady_clock::now();
    return launch(options_);
  }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  LaunchOptions options_;
  std::map<int, std::vector<std::string>> out_, err_;
  std::chrono::steady_clock::time_point begin_;
};

TEST_F(LauncherTest, TellsEveryRankItsPlace) {
  EXPECT_EQ(run(3, "echo $BYWAY_RANK/$BYWAY_SIZE $RANK $WORLD_SIZE $LOCAL_RANK"), 0);
  EXPECT_THAT(out_[0], ElementsAre("0/3 0 3 0"));
  EXPECT_THAT(out_[2], ElementsAre("2/3 2 3 2"));
}

TEST_F(LauncherTest, KeepsTheStreamsApart) {
  EXPECT_EQ(run(1, "echo out; echo err >&2"), 0);
  EXPECT_THAT(out_[0], ElementsAre("out"));
  EXPECT_THAT(err_[0], ElementsAre("err"));
}

TEST_F(LauncherTest, GivesTheLastLineWithoutNewline) {
  EXPECT_EQ(run(1, "printf 'a\\nb'"), 0);
  EXPECT_THAT(out_[0], ElementsAre("a", "b"));
}

TEST_F(LauncherTest, TheStoreIsAFolderThatIsRemoved) {
  EXPECT_EQ(run(2, "touch $BYWAY_STORE/$BYWAY_RANK && echo $BYWAY_STORE"), 0);
  ASSERT_EQ(out_[0].size(), 1u);
  EXPECT_EQ(out_[0], out_[1]);
  EXPECT_FALSE(std::filesystem::exists(out_[0][0]));
}

TEST_F(LauncherTest, TheFirstFailureEndsTheJob) {
  EXPECT_EQ(run(3, "test $BYWAY_RANK = 1 && exit 7; sleep 30"), 7);
  EXPECT_LT(seconds(), 4);
}

TEST_F(LauncherTest, ASignalCounts128More) {
  EXPECT_EQ(run(2, "test $BYWAY_RANK = 0 && kill -SEGV $$; sleep 30"), 128 + SIGSEGV);
}

TEST_F(LauncherTest, WhoIgnoresTermIsKilled) {
  options_.killAfter = 0.3;
  EXPECT_EQ(run(2,
                "test $BYWAY_RANK = 0 && { sleep 0.3; exit 3; }; "
                "trap '' TERM; while :; do sleep 1; done"),
            3);
  EXPECT_GE(seconds(), 0.55);
  EXPECT_LT(seconds(), 5);
}

TEST_F(LauncherTest, APeerThatHandlesTermMayCleanUp) {
  EXPECT_EQ(run(2,
                "test $BYWAY_RANK = 0 && { sleep 0.3; exit 3; }; "
                "trap 'echo cleaned; exit 0' TERM; while :; do sleep 0.05; done"),
            3);
  EXPECT_THAT(out_[1], ElementsAre("cleaned"));
}

TEST_F(LauncherTest, WhatARankLeavesRunningIsEnded) {
  EXPECT_EQ(run(1, "sleep 30 & echo $!"), 0);
  EXPECT_LT(seconds(), 4);
  ASSERT_EQ(out_[0].size(), 1u);
  const std::string state = "/proc/" + out_[0][0];
  for (int i = 0; i < 100 && std::filesystem::exists(state); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_FALSE(std::filesystem::exists(state));
}

TEST_F(LauncherTest, AProgramThatIsNotThereIs127) {
  options_.program = {"/nonexistent/program"};
  options_.onLine = [](int, Stream, std::string_view) {};
  EXPECT_EQ(launch(options_), 127);
}

TEST_F(LauncherTest, AProgramThatIsNoProgramIs126) {
  const TemporaryFolder folder("byway-test");
  writeFileAtomically(folder.path() + "/plain", "text");
  options_.program = {folder.path() + "/plain"};
  options_.onLine = [](int, Stream, std::string_view) {};
  EXPECT_EQ(launch(options_), 126);
}

TEST_F(LauncherTest, GivenVariablesReplaceThoseOfTheLauncher) {
  ::setenv("BYWAY_PACE", "1M", 1);
  options_.environment = {{"BYWAY_PACE", "2M"}};
  EXPECT_EQ(run(1, "env | grep -c '^BYWAY_PACE='; echo $BYWAY_PACE"), 0);
  ::unsetenv("BYWAY_PACE");
  EXPECT_THAT(out_[0], ElementsAre("1", "2M"));
}

// In a child, since the launcher handles signals of its whole process.
TEST_F(LauncherTest, ItsOwnSignalGoesToTheRanks) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run(2, "sleep 30"));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ::kill(child, SIGINT);
  int status = 0;
  const auto begin = std::chrono::steady_clock::now();
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGINT);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

TEST_F(LauncherTest, NothingOutlivesItWhenItIsKilled) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const TemporaryFolder folder("byway-test");
  const pid_t child = ::fork();
  if (child == 0) {
    // The pipe's write end stays open as long as a rank, or what it started, lives.
    ::close(ends[0]);
    ::setenv("TMPDIR", folder.path().c_str(), 1);
    ::_exit(run(2, "sleep 30 & sleep 30"));
  }
  ::close(ends[1]);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  char byte = 0;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
  ::close(ends[0]);
  for (int i = 0; i < 100 && !std::filesystem::is_empty(folder.path()); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace byway::tools
