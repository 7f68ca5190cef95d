// SPDX-License-Identifier: BSD-3-Clause
// Flat cells measured against other libraries, all in turns in the same run.
#pragma once

#include <string>
#include <vector>

#include "byway/tools/bench/results_file.h"

namespace byway::tools {

// Measures the cells that `results` does not have, one row for each library. `cache` holds the
// libraries' environments.
void runCellsAgainst(const BenchSettings& settings, const std::vector<DemoCell>& cells,
                     const std::string& cache, ResultsFile& results);

}  // namespace byway::tools
