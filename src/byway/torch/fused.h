// SPDX-License-Identifier: BSD-3-Clause
// The same collective in several disjoint groups of ranks, with the other ranks helping.
#pragma once

#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Types.hpp>

#include "byway/torch/tensors.h"

namespace byway::pytorch {

// The part of a call that has elements of one type.
struct FusedOfType {
  at::ScalarType type;
  // For each group one count for all its blocks, or one for each block (docs/schedules.md, section
  // "Blocks").
  std::vector<std::vector<std::uint64_t>> counts;
  // This rank's; both empty where it helps. Where lists have several tensors, each is a collective
  // of its own that travels with the others, and the group's blocks are equal. The same list twice:
  // in place (all_reduce, broadcast, reduce).
  Tensors inputs, outputs;
};

struct FusedCall {
  std::string collective;                // "all_reduce", ...
  std::vector<std::vector<int>> groups;  // ranks of the process group
  std::vector<int> roots;                // one for each group, a place in it; or none
  std::vector<FusedOfType> types;
  c10d::ReduceOp op;
};

}  // namespace byway::pytorch
