// SPDX-License-Identifier: BSD-3-Clause
// The Python that belongs to this command: that of the virtual environment it is installed in.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace byway::tools {

std::string pythonCommand();
// That one first, then those that may have the demo's drawing code.
std::vector<std::string> pythonCandidates();

// True when `python -c CODE` ends well; prints nothing.
bool pythonRuns(const std::string& python, const std::string& code);

// What `python -c CODE` prints, without the last line's end; nothing where it fails.
std::optional<std::string> pythonSays(const std::string& python, const std::string& code);

// Runs a program with its output on the launcher's; returns its exit status, 127 where it cannot be
// run.
int runProgram(const std::vector<std::string>& program);

std::string ownPath();  // of this executable

}  // namespace byway::tools
