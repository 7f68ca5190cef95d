// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/lazy/flush.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <string_view>

#include <torch/csrc/lazy/backend/backend_device.h>
#include <torch/csrc/lazy/core/lazy_graph_executor.h>

#include "byway/torch/lazy/lazy_work.h"
#include "byway/torch/lazy/record_table.h"

namespace byway::pytorch::lazy {

namespace lz = torch::lazy;

namespace {

std::atomic<Mode> mode = Mode::Record;
std::atomic<std::int64_t> limit = 1000;

struct Unwaited {
  std::mutex mutex;
  std::set<std::int64_t> ids;
};
Unwaited& unwaited() {
  static auto* const all = new Unwaited();
  return *all;
}

lz::BackendDevice lazyDevice() { return lz::atenDeviceToBackendDevice(c10::Device(c10::kLazy, 0)); }

constexpr std::size_t kManyUnwaited = 1000;

// Takes the tensors that nobody waited for out of `live`, and forgets those that are over.
void takeUnwaited(std::vector<lz::LazyTensorPtr>& live) {
  const std::scoped_lock lock(unwaited().mutex);
  std::set<std::int64_t> open;
  const auto waits = [&](const lz::LazyTensorPtr& tensor) {
    const std::int64_t id = tensor->GetUniqueId();
    if (unwaited().ids.count(id) == 0 || !tensor->CurrentIrValue()) return false;
    open.insert(id);
    return true;
  };
  live.erase(std::remove_if(live.begin(), live.end(), waits), live.end());
  unwaited().ids.swap(open);
}

template <typename Fn>
void withOriginalError(const Fn& fn) {
  try {
    fn();
  } catch (...) {
    if (const auto original = RecordTable::instance().failure()) std::rethrow_exception(original);
    throw;
  }
}

}  // namespace

void setMode(Mode next) { mode = next; }
void setLimit(std::int64_t calls) { limit = calls; }

void flush() {
  withOriginalError([] {
    const auto device = lazyDevice();
    lz::LazyGraphExecutor::Get()->SyncLiveTensorsGraph(&device, {}, true);
    lz::LazyGraphExecutor::Get()->WaitDeviceOps({});
  });
  const std::scoped_lock lock(unwaited().mutex);
  unwaited().ids.clear();
}

void flushCalls() {
  if (ReplayScope::active() || RecordTable::instance().pending() == 0) return;
  withOriginalError([] {
    const auto device = lazyDevice();
    auto tensors = lz::LazyGraphExecutor::Get()->GetLiveTensors(&device);
    takeUnwaited(tensors);
    lz::LazyGraphExecutor::Get()->SyncTensorsGraph(&tensors, {}, true, true);
  });
}

void markUnwaited(const Tensors& results) {
  bool many = false;
  {
    const std::scoped_lock lock(unwaited().mutex);
    for (const at::Tensor& result : results) {
      unwaited().ids.insert(lz::GetLtcTensor(result)->GetUniqueId());
    }
    many = unwaited().ids.size() > kManyUnwaited;
  }
  if (!many) return;
  const auto device = lazyDevice();
  auto live = lz::LazyGraphExecutor::Get()->GetLiveTensors(&device);
  takeUnwaited(live);
}

bool anyUnwaited() {
  {
    const std::scoped_lock lock(unwaited().mutex);
    if (unwaited().ids.empty()) return false;
  }
  const auto device = lazyDevice();
  auto live = lz::LazyGraphExecutor::Get()->GetLiveTensors(&device);
  takeUnwaited(live);
  const std::scoped_lock lock(unwaited().mutex);
  return !unwaited().ids.empty();
}

void afterRecording() {
  if (mode == Mode::Cut || RecordTable::instance().pending() >= limit) flushCalls();
}

void reset() {
  Recorder::instance().reset();
  RecordTable::instance().reset();
  // The device keeps the error for its next user: take it.
  try {
    lz::LazyGraphExecutor::Get()->DeviceBarrier(lazyDevice());
  } catch (...) {
  }
}

void beforeEagerCall(const char* operation) {
  if (std::string_view(operation) == "start_coalescing") return beginWindow();
  if (std::string_view(operation) == "end_coalescing") return endWindow();
  flushCalls();
}

}  // namespace byway::pytorch::lazy
