// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "byway/torch/traced_call.h"

namespace byway::pytorch {

// Calls that a compiled graph has started and not waited for. The handle is a one-element int64
// tensor: it travels through the graph like any tensor, and freeing its storage lets the call go.

// Takes over a call whose tensors nobody else holds, starts it, returns its handle.
at::Tensor startTraced(TracedCall call);

// The same for a call that is under way.
at::Tensor holdTraced(TracedCall call, std::vector<c10::intrusive_ptr<c10d::Work>> works);

// Waits for the call and copies its results into `outs`, or, with no `outs`, only waits. The second
// wait for a handle does nothing.
void finishTraced(const at::Tensor& handle, const std::vector<at::Tensor>& outs,
                  std::chrono::milliseconds timeout);

// True once the call is done, waited for or not.
bool isTracedDone(const at::Tensor& handle);

// Calls that still own memory (for tests).
int64_t tracedInFlight();

// Makes `torch.ops.byway` (traceable_ops.cc). Called once, by the extension.
void defineTracedOperators();

}  // namespace byway::pytorch
