// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "byway/tools/command.h"

namespace byway::tools {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Words = std::vector<std::string>;

TEST(RunArgumentsTest, OptionsOfTheProgramAreItsOwn) {
  Words words{"run", "-n", "2", "prog", "-n", "5", "--help"};
  EXPECT_THAT(splitRunArguments(words), ElementsAre("prog", "-n", "5", "--help"));
  EXPECT_THAT(words, ElementsAre("run", "-n", "2"));
}

TEST(RunArgumentsTest, TwoDashesEndTheOptions) {
  Words words{"-v", "run", "--ranks=2", "--", "--strange"};
  EXPECT_THAT(splitRunArguments(words), ElementsAre("--strange"));
  EXPECT_THAT(words, ElementsAre("-v", "run", "--ranks=2"));
}

TEST(RunArgumentsTest, OnlyTheFirstTwoDashesAreTaken) {
  Words words{"run", "-n2", "--", "prog", "--", "x"};
  EXPECT_THAT(splitRunArguments(words), ElementsAre("prog", "--", "x"));
}

TEST(RunArgumentsTest, NoProgram) {
  Words words{"run", "-n"};
  EXPECT_THAT(splitRunArguments(words), IsEmpty());
  EXPECT_THAT(words, ElementsAre("run", "-n"));
}

TEST(RunArgumentsTest, OtherCommandsKeepTheirs) {
  Words words{"verify", "run"};
  EXPECT_THAT(splitRunArguments(words), IsEmpty());
  EXPECT_THAT(words, ElementsAre("verify", "run"));
}

}  // namespace
}  // namespace byway::tools
