// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/option_checks.h"

#include <string>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

namespace byway::tools {
namespace {

std::string verdict(const CLI::Validator& check, const std::string& text) { return check(text); }

TEST(OptionChecksTest, WholeNumbers) {
  for (const char* good : {"1", "7", "2147483647"}) EXPECT_EQ(verdict(wholeNumber(1), good), "");
  for (const char* bad : {"0", "-1", "x", "", "1.5", "2147483648"}) {
    EXPECT_EQ(verdict(wholeNumber(1), bad),
              "\"" + std::string(bad) + "\" is not a whole number from 1");
  }
  EXPECT_EQ(verdict(wholeNumber(2, 64), "65"), "\"65\" is not a whole number from 2 to 64");
}

TEST(OptionChecksTest, NumbersAboveZero) {
  for (const char* good : {"1", "0.5", "1e3"}) EXPECT_EQ(verdict(numberAboveZero(), good), "");
  for (const char* bad : {"0", "-1", "abc", "", "inf", "nan", "2x"}) {
    EXPECT_EQ(verdict(numberAboveZero(), bad),
              "\"" + std::string(bad) + "\" is not a number above 0");
  }
}

TEST(OptionChecksTest, NumbersOfARange) {
  EXPECT_EQ(verdict(numberBetween(0, 60), "60"), "");
  for (const char* bad : {"61", "-0.1", "nan", "s"}) {
    EXPECT_EQ(verdict(numberBetween(0, 60), bad),
              "\"" + std::string(bad) + "\" is not a number from 0 to 60");
  }
}

TEST(OptionChecksTest, Emptiness) {
  EXPECT_EQ(verdict(notEmpty("a list"), "0"), "");
  EXPECT_EQ(verdict(notEmpty("a list"), ""), "\"\" is not a list");
}

}  // namespace
}  // namespace byway::tools
