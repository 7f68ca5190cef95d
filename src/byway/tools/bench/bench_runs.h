// SPDX-License-Identifier: BSD-3-Clause
// Cells measured, on the virtual clock and by processes.
#pragma once

#include "byway/tools/bench/results_file.h"

namespace byway::tools {

// Both run the cells that `results` does not have, put them there, and leave out those that need
// more memory than the settings allow.

// With `values` real memory is moved and compared; without only time passes.
void runVirtualCells(const BenchSettings& settings, const std::vector<DemoCell>& cells, bool values,
                     ResultsFile& results);

// Returns the ranks' exit status.
int runRealCells(const BenchSettings& settings, const std::vector<DemoCell>& cells,
                 ResultsFile& results);

}  // namespace byway::tools
