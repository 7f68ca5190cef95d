// SPDX-License-Identifier: BSD-3-Clause
// What a cell needs, computed before anything is allocated, and what there is.
#pragma once

#include <cstdint>

#include "byway/tools/demo/virtual_run.h"

namespace byway::tools {

// Bytes of all ranks together: buffers of members, and stage memory of both ways of every
// communicator, each at most the quota.
std::uint64_t memoryNeed(const DemoCell& cell, const PlannedCell& planned);

// Bytes of the members' buffers of a cell of these groups and counts.
std::uint64_t bufferBytes(const DemoCell& cell);

// What the host, or the limit of the process's control group, still has.
std::uint64_t availableMemory();

}  // namespace byway::tools
