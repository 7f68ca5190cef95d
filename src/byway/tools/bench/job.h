// SPDX-License-Identifier: BSD-3-Clause
// What the bench tells its ranks, through a file.
#pragma once

#include <string>
#include <vector>

#include "byway/tools/bench/bench_cells.h"

namespace byway::tools {

struct BenchJob {
  DemoSettings links;  // rate, latency, deadline
  StopRule rule;
  std::vector<DemoCell> cells;
};

std::string toJson(const BenchJob& job);
BenchJob benchJobFromJson(const std::string& text);

}  // namespace byway::tools
