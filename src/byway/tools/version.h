// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace byway::tools {

std::string versionText();  // "byway 0.1.0"

}  // namespace byway::tools
