// SPDX-License-Identifier: BSD-3-Clause
// What the corpus of the wire headers and their fuzz target agree on.
#pragma once

#include <cstdint>

#include "byway/planner/planner.h"

namespace byway::fuzz {

// The first byte of an input.
enum class Reader : std::uint8_t { Header, Pieces, Address, Control, Standing, Plan };

// The call whose plans are sent.
inline PlanRequest sampleRequest() {
  PlanRequest request;
  request.collective = Collective::AllReduce;
  request.ranks = 3;
  request.groups = {{{0, 1}, 0}};
  request.blockBytes = {1 << 20};
  return request;
}

}  // namespace byway::fuzz
