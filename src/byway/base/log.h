// SPDX-License-Identifier: BSD-3-Clause
// The library prints nothing: what it has to say goes to this hook, which the embedding program
// sets (the `byway` command uses spdlog, the torch extension Python's logging).
#pragma once

#include <functional>
#include <string>

namespace byway {

enum class LogLevel { Debug, Info, Warning, Error };

// Called from any thread, one line at a time, without a trailing newline. Must not throw.
using LogHook = std::function<void(LogLevel, const std::string&)>;

// Replaces the hook; an empty function silences the library, which is the default.
void setLogHook(LogHook hook);
void log(LogLevel level, const std::string& line);

}  // namespace byway
