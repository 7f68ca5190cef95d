// SPDX-License-Identifier: BSD-3-Clause
// The bench on the screen: progress, table, checks.
#pragma once

#include <cstdio>
#include <string>

#include "byway/tools/bench/results_file.h"

namespace byway::tools {

// What a finished run must hold, and what is told beside it.
std::vector<Check> checksOf(const BenchSettings& settings, const std::vector<Measured>& cells);

void printBenchHeading(const BenchSettings& settings, std::size_t cells, std::size_t known);
void printBenchTable(const BenchSettings& settings, const std::vector<Measured>& cells);
void printRefused(const std::vector<Refused>& refused);
// Returns false when one that must be held is not.
bool printBenchChecks(const std::vector<Check>& checks);

// One line on stderr that is rewritten on a terminal; elsewhere a line a cell.
class BenchProgress {
 public:
  // `expected`: of each cell that is to run, in any unit; what is left is told by its share.
  BenchProgress(std::size_t known, std::vector<double> expected);
  void running(const std::string& name, std::size_t samples);
  void finished(const Measured& cell);
  void end() const;

 private:
  std::string left() const;

  std::size_t known_, done_ = 0;
  std::vector<double> expected_;
  Seconds begin_;
  bool terminal_;
};

}  // namespace byway::tools
