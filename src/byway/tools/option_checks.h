// SPDX-License-Identifier: BSD-3-Clause
// Checks of options that CLI11 parses; what they refuse reads: --active: "0" is not a whole number
// from 1.
#pragma once

#include <limits>

namespace CLI {
class Validator;
}

namespace byway::tools {

CLI::Validator wholeNumber(int least, int most = std::numeric_limits<int>::max());
CLI::Validator numberAboveZero();
CLI::Validator numberBetween(double least, double most);
// `expected`: "a list of groups".
CLI::Validator notEmpty(const char* expected);

}  // namespace byway::tools
