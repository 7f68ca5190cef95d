// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/version.h"

namespace byway::tools {

std::string versionText() { return "byway " BYWAY_VERSION; }

}  // namespace byway::tools
