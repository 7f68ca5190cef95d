// SPDX-License-Identifier: BSD-3-Clause
// What the bench measures: its settings and its list of cells.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "byway/tools/bench/statistics.h"
#include "byway/tools/demo/cells.h"

namespace byway::tools {

struct BenchSettings {
  Scenario scenario = Scenario::Fused;
  std::vector<Collective> collectives;
  std::vector<int> active;
  std::vector<std::uint64_t> sizes;  // bytes of the collective's unit, of the largest group
  DType dtype = DType::Float32;
  int ranks = 8;
  Topology links;              // the host's for flat cells, which are not slowed
  std::vector<double> ratios;  // of the groups' counts; empty: all alike
  int groups = 0;              // that call; 0: as many as there is room for
  int live = -1;               // what parallel calls state; -1: how many there are; 0: nothing
  bool production = false;     // the shapes of training jobs instead of `sizes`
  bool isVirtual = false;
  std::vector<std::string> against;  // flat: other libraries
  StopRule rule;
  double bar = 0;
  std::uint64_t memory = 0;  // bytes that a cell may need
};

// Throws Error{InvalidArgument} where nothing is left, or the groups do not fit the ratios.
std::vector<DemoCell> benchCells(const BenchSettings& settings);

// What tells a cell from all others, in words.
std::string keyOf(const DemoCell& cell);

// Four groups of two in one call, whose totals are near 12 GB each: the larger of a member's
// buffers. Where the memory does not suffice all are scaled alike.
inline constexpr double kProductionBytes = 12e9;

}  // namespace byway::tools
