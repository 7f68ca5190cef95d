// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/picture.h"

#include <fmt/format.h>

#include "byway/tools/python.h"

namespace byway::tools {

void drawPicture(const std::string& results, const std::string& picture) {
  for (const std::string& python : pythonCandidates()) {
    if (!pythonRuns(python, "import matplotlib, byway.plot")) continue;
    if (runProgram({python, "-m", "byway.plot", results, picture}) == 0) {
      fmt::print("picture: {}\n", picture);
    }
    return;
  }
  fmt::print("no picture: no Python here has matplotlib and Byway's plot module ({})\n",
             "pip install matplotlib");
}

}  // namespace byway::tools
