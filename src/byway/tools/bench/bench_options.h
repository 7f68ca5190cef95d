// SPDX-License-Identifier: BSD-3-Clause
// The options of `byway bench`, and what follows from them.
#pragma once

#include <string>

#include "byway/tools/bench/bench_cells.h"

namespace CLI {
class App;
}

namespace byway::tools {

struct BenchOptions {
  Scenario scenario = Scenario::Fused;
  std::string collective = "all", active = "2,3,4", sizes, dtype = "float32";
  std::string rate, topology, counts, shape, live, bar, memory;
  double latency = -1;
  int ranks = 8, groups = 0;
  int pairs = StopRule{}.least, mostPairs = StopRule{}.most;
  bool isVirtual = false, values = false;
  std::string json = "byway-bench.json", resume, picture;
  std::string against, peerCache;

  // Throws Error{InvalidArgument} naming the option.
  BenchSettings settings() const;
};

void addBenchOptions(CLI::App& sub, BenchOptions& options);

}  // namespace byway::tools
