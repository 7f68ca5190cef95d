// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/lazy/check.h"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "byway/torch/hook.h"
#include "byway/torch/lazy/flush.h"

namespace byway::pytorch::lazy {
namespace {

const LazyLink* backend = nullptr;

class CheckScope {
 public:
  CheckScope() { backend->setChecking(true); }
  ~CheckScope() { backend->setChecking(false); }
  CheckScope(const CheckScope&) = delete;
  CheckScope& operator=(const CheckScope&) = delete;
};

bool isOurs(const RecordedCall& call) {
  const c10::IValue* group = call.argument("process_group");
  if (!backend || !group) return false;
  const auto processGroup = group->toCustomClass<c10d::ProcessGroup>();
  return backend->isByway(*processGroup->getBackend(c10::DeviceType::CPU));
}

}  // namespace

void connect(std::int64_t link) {
  backend = reinterpret_cast<const LazyLink*>(link);
  backend->setHook(link ? &beforeEagerCall : nullptr);
}

void checkOrCallEagerly(const RecordedCall& call) {
  if (!isOurs(call)) return;
  try {
    const CheckScope checking;
    call.make({}, true);
    return;
  } catch (...) {
    // Told by the call itself, below.
  }
  flushCalls();
  call.make({}, true).work->wait();
}

}  // namespace byway::pytorch::lazy
