// SPDX-License-Identifier: BSD-3-Clause
// One timeline out of the parts that ranks left (docs/recorder.md), in the trace-event format of
// Perfetto and Chrome.
#pragma once

#include <cstddef>
#include <string>

namespace byway::tools {

struct MergedTrace {
  std::string json;
  std::size_t ranks = 0, calls = 0, transfers = 0, steps = 0, hosts = 0;
};

// Throws Error{InvalidArgument} naming file, line and reason.
MergedTrace mergeTrace(const std::string& folder);

}  // namespace byway::tools
