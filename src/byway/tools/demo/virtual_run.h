// SPDX-License-Identifier: BSD-3-Clause
// A cell on the virtual clock: all ranks in one thread, with real memory, so that values are
// compared as in the real run.
#pragma once

#include "byway/tools/demo/results.h"

namespace byway::tools {

CellResult runVirtually(const DemoCell& cell, const DemoSettings& settings);

}  // namespace byway::tools
