// SPDX-License-Identifier: BSD-3-Clause
// What repeated runs say: medians with order-statistic intervals, and when there are enough runs.
#pragma once

#include <vector>

namespace byway::tools {

struct Interval {
  double low = 0, high = 0;
};

// Of the median, with at least 95 % confidence whatever the distribution: the narrowest pair of
// order statistics x(k), x(n + 1 - k) that has it. Fewer than six values have none; then from the
// least to the largest.
Interval medianInterval(std::vector<double> values);

struct StopRule {
  int least = 15, most = 60;  // values
  double halfWidth = 0.03;    // of the interval, as a part of the median
  double sample = 0.15;       // seconds: short calls are repeated so long for one value
};
bool isDecided(const std::vector<double>& values, const StopRule& rule);
// Whether another value is to be measured.
bool needsMore(const std::vector<double>& values, const StopRule& rule);

}  // namespace byway::tools
