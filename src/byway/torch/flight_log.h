// SPDX-License-Identifier: BSD-3-Clause
// The last calls of all groups of this process, as torch.distributed.flight_recorder reads them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "byway/torch/call.h"
#include "byway/torch/tensors.h"

namespace byway::pytorch {

struct FlightGroup {
  std::string name, description;           // torch's; "0" and "default_pg" for the world
  std::vector<std::uint64_t> globalRanks;  // in group order
  int rank = 0;                            // in the group
};

// What is known when a call is made. `peer`: of a message, -1 from any rank.
struct FlightCall {
  const CallKind* kind;
  std::shared_ptr<const FlightGroup> group;
  std::int64_t collectives, messages;  // made so far in the group, this one counted
  int peer;
  std::int64_t timeoutMs;
};

// Keeps a call and returns its number, 0 where the recorder is off (BYWAY_RECORDER=0).
std::uint64_t flightBegins(const FlightCall& call, const Tensors& inputs, const Tensors& outputs);

// `source`: the rank that a message came from, where known. The first call that fails writes all to
// BYWAY_RECORDER_DIR, if that is set.
void flightEnds(std::uint64_t number, bool failed, int source);

// All that is kept, pickled: a dict of version, pg_config, pg_status, comm_lib_version and entries,
// as torch 2.13's own recorder (version 2.10) writes it, without stacks.
std::string flightRecord();

}  // namespace byway::pytorch
