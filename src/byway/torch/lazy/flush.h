// SPDX-License-Identifier: BSD-3-Clause
// Running what was recorded, before something that must come after it.
#pragma once

#include <cstdint>

#include "byway/torch/lazy/recorder.h"

namespace byway::pytorch::lazy {

// Record: calls run at the step mark. Cut: at once, with the graph before them.
enum class Mode : char { Record, Cut };
void setMode(Mode mode);
// Runs the graph after so many recorded calls, so that no graph grows without bound.
void setLimit(std::int64_t calls);

// Runs every live tensor's graph, like torch._lazy.mark_step(wait=True), but throws the error of a
// recorded call as that call threw it.
void flush();
// Begins everything that was recorded; waits for nothing whose Work was dropped unwaited, since
// what the peer needs for it may come after this. Nothing to do: returns at once.
void flushCalls();
// After a call was recorded: runs it if the mode or the limit says so.
void afterRecording();
// Forgets a failed step. Tensors that it would have computed are lost.
void reset();
// For the backend's methods (byway/torch/hook.h).
void beforeEagerCall(const char* operation);

}  // namespace byway::pytorch::lazy
