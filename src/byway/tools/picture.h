// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace byway::tools {

// Draws a results file with byway.plot; says on stdout which file it became, or what is missing.
void drawPicture(const std::string& results, const std::string& picture);

}  // namespace byway::tools
