// SPDX-License-Identifier: BSD-3-Clause
// The one list of environment variables (docs/environment.md).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace byway::tools {

struct Variable {
  std::string_view name;  // one that ends in "*" is a prefix
  std::string_view meaning;
};
std::span<const Variable> knownVariables();

struct SetVariable {
  std::string name, value;
  bool known = false;
};
// All BYWAY_* variables of this process, by name.
std::vector<SetVariable> setVariables();

// One line on stderr for each that nothing reads: a misspelt name does nothing, silently.
void warnOfUnknownVariables();

}  // namespace byway::tools
