// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/bench/statistics.h"

#include <algorithm>
#include <cmath>

#include "byway/tools/demo/results.h"

namespace byway::tools {
namespace {

constexpr double kConfidence = 0.95;

// The largest k from 1 such that the median lies outside x(k) .. x(n + 1 - k) with at most 5 %
// probability: twice the binomial tail P(X < k) for n halves. 0: none.
std::size_t orderFor(std::size_t n) {
  double term = std::pow(0.5, static_cast<double>(n));  // of exactly i values below the median
  double tail = 0;
  for (std::size_t i = 0; i < n; ++i) {
    tail += term;
    if (2 * tail > 1 - kConfidence) return i;
    term *= static_cast<double>(n - i) / static_cast<double>(i + 1);
  }
  return 0;
}

}  // namespace

Interval medianInterval(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t skipped = std::max<std::size_t>(orderFor(values.size()), 1) - 1;
  return {values[skipped], values[values.size() - 1 - skipped]};
}

bool isDecided(const std::vector<double>& values, const StopRule& rule) {
  if (values.size() < static_cast<std::size_t>(rule.least)) return false;
  const auto [low, high] = medianInterval(values);
  return (high - low) / 2 < rule.halfWidth * median(values);
}

bool needsMore(const std::vector<double>& values, const StopRule& rule) {
  return values.size() < static_cast<std::size_t>(rule.most) && !isDecided(values, rule);
}

}  // namespace byway::tools
