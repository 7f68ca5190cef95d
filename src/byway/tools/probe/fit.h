// SPDX-License-Identifier: BSD-3-Clause
// From measurements to a topology, and what there is to say of it.
#pragma once

#include <string>
#include <vector>

#include "byway/planner/topology.h"
#include "byway/tools/probe/measure.h"

namespace byway::tools {

// Rates that differ by less than this from the middle of theirs count as one rate, so that a
// regular machine gets the regular constructions.
inline constexpr double kNoise = 0.03;
// A port, or all links together, is limited when it carries so much less than its links do.
inline constexpr double kPortNoise = 0.15;
inline constexpr double kBusNoise = 0.20;

enum class Build { UniformMesh, Switch, Irregular };

struct Fit {
  Topology topology;
  Build build = Build::Irregular;
  double usual = 0;                // the rate that most links have
  std::vector<std::string> notes;  // slow and missing links, limits
};

Fit fit(const Measurements& measured);
const char* nameOf(Build build);
std::string rateText(double bytesPerSecond);  // "10 MB/s"

}  // namespace byway::tools
