// SPDX-License-Identifier: BSD-3-Clause
// The demo on the screen.
#pragma once

#include <cstdio>
#include <string>

#include "byway/tools/demo/results.h"

namespace byway::tools {

void printHeading(const DemoSettings& settings, const std::vector<DemoCell>& cells,
                  bool onVirtualClock);
void printTable(const DemoResults& results);
// Returns false when a check that the demo must pass is not held.
bool printChecks(const DemoResults& results);

// One line on stderr that is rewritten on a terminal, and a line a cell elsewhere.
class Progress {
 public:
  Progress(std::size_t cells, Seconds expected);
  void running(std::size_t done, const std::string& name);
  void finished(std::size_t done, const CellResult& result);
  void end();

 private:
  std::size_t cells_;
  Seconds begin_, expected_;
  bool terminal_;
};

}  // namespace byway::tools
