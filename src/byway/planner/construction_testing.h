// SPDX-License-Identifier: BSD-3-Clause
// What the tests of the builder files share: cells with scrambled ranks, and what must hold of
// every candidate.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "byway/planner/constructions.h"
#include "byway/schedule/loads.h"
#include "byway/schedule/verify.h"

namespace byway {

struct CellSpec {
  Collective collective;
  int ranks, members;
  int groups = 1;
  double partialWeight = 1;
  int root = 0;
};

// Neither ascending nor contiguous: ranks step by a number that shares no factor with `ranks`.
inline std::vector<int> scrambled(int ranks) {
  std::vector<int> order;
  const int step = ranks % 5 != 0 ? 5 : ranks % 3 != 0 ? 3 : 1;
  for (int i = 0; i < ranks; ++i) order.push_back((i * step + 3) % ranks);
  return order;
}

inline Cell cellOf(const CellSpec& spec) {
  Cell cell;
  cell.collective = spec.collective;
  cell.ranks = spec.ranks;
  cell.partialWeight = spec.partialWeight;
  const std::vector<int> order = scrambled(spec.ranks);
  for (int g = 0; g < spec.groups; ++g) {
    const auto first = order.begin() + g * spec.members;
    cell.groups.push_back({{first, first + spec.members}, spec.root % spec.members});
  }
  return cell;
}

struct Built {
  Schedule schedule;
  Loads loads;
  StageNeed need;
};

inline Built built(const Candidate& candidate, const Cell& cell) {
  Built result{candidate.build(), {}, {}};
  std::vector<double> sizes = cell.blockBytes;
  if (sizes.empty()) sizes.assign(result.schedule.shape.blocks.size(), 1.0);
  const double unit = *std::max_element(sizes.begin(), sizes.end());
  for (double& size : sizes) size /= unit;
  result.loads = loadsOf(result.schedule, sizes, cell.partialWeight);
  result.need = stageNeed(result.schedule, sizes, cell.partialWeight);
  return result;
}

// A right schedule, whose loads, messages and phases are what the candidate said. The value is
// compared with `value`, which the test has from another source.
inline void expectAsStated(const Candidate& candidate, const Cell& cell, double value) {
  SCOPED_TRACE(candidate.name + " " + toString(cell.collective) +
               " n=" + std::to_string(cell.ranks) + " A=" + std::to_string(cell.groups[0].size()) +
               " x" + std::to_string(cell.groups.size()) +
               " w=" + std::to_string(static_cast<int>(cell.partialWeight)));
  const Built result = built(candidate, cell);
  for (const Violation& v : violations(result.schedule)) {
    ADD_FAILURE() << "V" << v.rule << ": " << v.what;
  }
  EXPECT_NEAR(result.loads.sumOfMax(), value, 1e-6 * value);
  EXPECT_NEAR(candidate.value, value, 1e-9 * value);
  EXPECT_EQ(result.schedule.phases.size(), static_cast<std::size_t>(candidate.stages));
  EXPECT_EQ(*std::max_element(result.loads.messages.begin(), result.loads.messages.end()),
            static_cast<std::uint32_t>(candidate.messagesPerRank));
  EXPECT_EQ(result.schedule.name, candidate.name);
}

// The candidate of that name; a failure when there is none.
inline Candidate named(const std::vector<Candidate>& candidates, const std::string& name) {
  for (const Candidate& c : candidates) {
    if (c.name == name) return c;
  }
  ADD_FAILURE() << "no candidate " << name;
  return {};
}

// The value of candidate `name`, or 0.
inline double valueOf(const std::vector<Candidate>& candidates, const std::string& name) {
  return named(candidates, name).value;
}

}  // namespace byway
