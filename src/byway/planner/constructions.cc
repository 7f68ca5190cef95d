// SPDX-License-Identifier: BSD-3-Clause
// The registry: one line for each builder file.
#include "byway/planner/constructions.h"

#include <array>

namespace byway {

std::span<const Construction> constructions() {
  static constexpr std::array kAll{
      Construction{"direct", "links between members only: any cell", directCandidates},
      Construction{"S0", "any collective, groups of one size that cover all ranks", s0Candidates},
      Construction{"S3", "allreduce, one group of any size (S2: a pair)", s3Candidates},
      Construction{
          "S4", "all-gather, gather, reduce-scatter, scatter, one group of any size (S1: a pair)",
          s4Candidates},
      Construction{"S5", "all-to-all, one group of any size", s5Candidates},
      Construction{"S6", "all-to-all, two groups of four on eight ranks", s6Candidates},
      Construction{"S7", "broadcast and reduce, one group of any size or two that cover all ranks",
                   s7Candidates},
  };
  return kAll;
}

}  // namespace byway
