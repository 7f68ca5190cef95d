// SPDX-License-Identifier: BSD-3-Clause
// The options that the demo and its ranks share.
#pragma once

#include <string>
#include <vector>

#include "byway/tools/demo/cells.h"

namespace CLI {
class App;
}

namespace byway::tools {

struct DemoOptions {
  std::string rate = "10M", cells;
  double latency = 50, seconds = 0.8;
  int pairs = 3;
  bool all = false, quick = false;

  DemoSettings settings() const;
  // As a command line that reads back the same.
  std::vector<std::string> arguments() const;
};

void addDemoOptions(CLI::App& sub, DemoOptions& options);

}  // namespace byway::tools
