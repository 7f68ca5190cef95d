// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/constructions.h"

#include <array>

namespace byway {

std::span<const Construction> constructions() {
  static constexpr std::array kAll{
#define BYWAY_X(function, id, covers) Construction{id, covers, function},
      BYWAY_CONSTRUCTIONS(BYWAY_X)
#undef BYWAY_X
  };
  return kAll;
}

}  // namespace byway
