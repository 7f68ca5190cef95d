// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/hook.h"

#include <atomic>

namespace byway::pytorch {
namespace {
std::atomic<CallHook> current{nullptr};
}  // namespace

void setCallHook(CallHook hook) { current.store(hook, std::memory_order_release); }

void runCallHook(const char* operation) {
  if (const CallHook hook = current.load(std::memory_order_acquire)) hook(operation);
}

}  // namespace byway::pytorch
