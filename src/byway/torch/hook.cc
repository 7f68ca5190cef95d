// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/hook.h"

#include <atomic>

#include "byway/torch/process_group.h"

namespace byway::pytorch {
namespace {
std::atomic<CallHook> current{nullptr};
thread_local bool checking = false;

bool isByway(const c10d::Backend& backend) {
  return dynamic_cast<const ProcessGroupByway*>(&backend) != nullptr;
}
}  // namespace

void setCallHook(CallHook hook) { current.store(hook, std::memory_order_release); }

void runCallHook(const char* operation) {
  if (const CallHook hook = current.load(std::memory_order_acquire)) hook(operation);
}

void setChecking(bool on) { checking = on; }
bool isChecking() { return checking; }

const LazyLink& lazyLink() {
  static constexpr LazyLink kLink{&setCallHook, &setChecking, &isByway};
  return kLink;
}

}  // namespace byway::pytorch
