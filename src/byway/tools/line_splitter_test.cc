// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/line_splitter.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace byway::tools {
namespace {

using testing::ElementsAre;

class LineSplitterTest : public testing::Test {
 protected:
  void add(const std::string& bytes) {
    splitter_.add(bytes, [&](std::string_view line) { lines_.emplace_back(line); });
  }
  void finish() {
    splitter_.finish([&](std::string_view line) { lines_.emplace_back(line); });
  }
  LineSplitter splitter_;
  std::vector<std::string> lines_;
};

TEST_F(LineSplitterTest, JoinsWhatArrivesInPieces) {
  add("one\ntw");
  add("o");
  add("\n\nthree");
  EXPECT_THAT(lines_, ElementsAre("one", "two", ""));
  finish();
  EXPECT_THAT(lines_, ElementsAre("one", "two", "", "three"));
}

TEST_F(LineSplitterTest, CutsWhatIsTooLong) {
  const std::string most(LineSplitter::kLongest, 'x');
  add(most + "y\n");
  EXPECT_THAT(lines_, ElementsAre(most, "y"));
}

TEST_F(LineSplitterTest, ALineOfExactlyTheLongestIsOneLine) {
  const std::string most(LineSplitter::kLongest, 'x');
  add(most + "\nz\n");
  EXPECT_THAT(lines_, ElementsAre(most, "z"));
}

TEST_F(LineSplitterTest, NothingAtTheEndIsNoLine) {
  add("one\n");
  finish();
  EXPECT_THAT(lines_, ElementsAre("one"));
}

}  // namespace
}  // namespace byway::tools
