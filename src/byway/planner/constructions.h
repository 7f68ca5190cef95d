// SPDX-License-Identifier: BSD-3-Clause
// The registry: one line for each builder file.
#pragma once

#include <vector>

#include "byway/planner/construction.h"

// clang-format off
// X(function, id, covers), in the order in which ties are broken; direct ones first
#define BYWAY_CONSTRUCTIONS(X)                                                                     \
  X(directCandidates, "direct", "links between members only: any cell")                            \
  X(hostCandidates, "host", "memory that all ranks of one host see: any cell of small groups")       \
  X(s0Candidates, "S0", "any collective, groups of one size that cover all ranks")                 \
  X(s3Candidates, "S3", "allreduce, one group of any size (S2: a pair)")                           \
  X(s4Candidates, "S4", "all-gather, gather, reduce-scatter, scatter, one group (S1: a pair)")     \
  X(s5Candidates, "S5", "all-to-all, one group of any size")                                       \
  X(s6Candidates, "S6", "all-to-all, two groups of four on eight ranks")                           \
  X(s7Candidates, "S7", "broadcast, reduce: one group, or two that cover all ranks")               \
  X(packingCandidates, "packing", "whatever has no formula, on up to eight ranks")
// clang-format on

namespace byway {

#define BYWAY_X(function, id, covers) std::vector<Candidate> function(const Cell& cell);
BYWAY_CONSTRUCTIONS(BYWAY_X)
#undef BYWAY_X

}  // namespace byway
