// SPDX-License-Identifier: BSD-3-Clause
// What the environment says of recording and tracing.
#pragma once

#include "byway/executor/channel.h"

namespace byway {

// BYWAY_RECORDER, BYWAY_RECORDER_DIR, BYWAY_TRACE (docs/environment.md). Throws
// Error{InvalidArgument}.
void readRecording(ChannelOptions& options);

}  // namespace byway
