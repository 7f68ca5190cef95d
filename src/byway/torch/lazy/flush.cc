// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/lazy/flush.h"

#include <algorithm>
#include <atomic>
#include <string_view>
#include <unordered_set>

#include <torch/csrc/lazy/backend/backend_device.h>
#include <torch/csrc/lazy/core/ir_util.h>
#include <torch/csrc/lazy/core/lazy_graph_executor.h>

#include "byway/torch/lazy/lazy_work.h"
#include "byway/torch/lazy/record_table.h"
#include "byway/torch/lazy/recorder.h"

namespace byway::pytorch::lazy {

namespace lz = torch::lazy;

namespace {

std::atomic<Mode> mode = Mode::Record;
std::atomic<std::int64_t> limit = 1000;

lz::BackendDevice lazyDevice() { return lz::atenDeviceToBackendDevice(c10::Device(c10::kLazy, 0)); }

const CollNode* asCall(const lz::Node* node) { return dynamic_cast<const CollNode*>(node); }

// Takes out of `live` what depends on results that nobody waits for; but not what passes the token.
void takeUnwaited(std::vector<lz::LazyTensorPtr>& live) {
  if (!CollNode::anyUnwaited()) return;
  std::vector<lz::Value> values;  // holds the nodes
  std::vector<const lz::Node*> roots;
  for (const lz::LazyTensorPtr& tensor : live) {
    values.push_back(tensor->CurrentIrValue());
    if (values.back()) roots.push_back(values.back().node.get());
  }
  std::unordered_set<const lz::Node*> waiting;
  for (const lz::Node* node : lz::Util::ComputePostOrder(roots)) {
    const CollNode* call = asCall(node);
    const auto& operands = node->operands();
    if ((call && call->isUnwaited()) ||
        std::any_of(operands.begin(), operands.end(),
                    [&](const lz::Output& operand) { return waiting.count(operand.node) != 0; })) {
      waiting.insert(node);
    }
  }
  std::vector<lz::LazyTensorPtr> kept;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const lz::Node* node = values[i].node.get();
    const CollNode* call = asCall(node);
    if (waiting.count(node) == 0 || (call && call->passesToken())) kept.push_back(live[i]);
  }
  live.swap(kept);
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
  const RecordingLock lock;
  withOriginalError([] {
    const auto device = lazyDevice();
    lz::LazyGraphExecutor::Get()->SyncLiveTensorsGraph(&device, {}, true);
    lz::LazyGraphExecutor::Get()->WaitDeviceOps({});
  });
}

void flushCalls() {
  if (ReplayScope::active() || RecordTable::instance().pending() == 0) return;
  const RecordingLock lock;
  withOriginalError([] {
    const auto device = lazyDevice();
    auto tensors = lz::LazyGraphExecutor::Get()->GetLiveTensors(&device);
    takeUnwaited(tensors);
    lz::LazyGraphExecutor::Get()->SyncTensorsGraph(&tensors, {}, true, true);
  });
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
