// SPDX-License-Identifier: BSD-3-Clause
// The link to the backend, which is in a library of its own: its checks, and its calls' hook.
#pragma once

#include <cstdint>

#include "byway/torch/lazy/recorded_call.h"

namespace byway::pytorch::lazy {

// `link`: address of a LazyLink (byway/torch/hook.h) of the backend's library.
void connect(std::int64_t link);

// Lets the backend check the arguments as for tensors of these shapes. A call that is wrong is made
// at once, so that the error, and what the other ranks learn of it, is that of an eager call.
// Calls of other backends' groups are not checked.
void checkOrCallEagerly(const RecordedCall& call);

}  // namespace byway::pytorch::lazy
