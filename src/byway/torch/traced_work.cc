// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/traced_work.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace byway::pytorch {
namespace {

struct Record {
  TracedCall call;
  std::vector<c10::intrusive_ptr<c10d::Work>> works;

  bool done() const {
    return std::all_of(works.begin(), works.end(),
                       [](const auto& work) { return !work || work->isCompleted(); });
  }
};
using RecordPtr = std::shared_ptr<Record>;

class Table {
 public:
  int64_t add(RecordPtr record) {
    const std::lock_guard lock(mutex_);
    sweep();
    records_.emplace(++last_, std::move(record));
    return last_;
  }

  RecordPtr find(int64_t key) {
    const std::lock_guard lock(mutex_);
    const auto found = records_.find(key);
    return found == records_.end() ? nullptr : found->second;
  }

  RecordPtr take(int64_t key) {
    const std::lock_guard lock(mutex_);
    const auto found = records_.find(key);
    if (found == records_.end()) return nullptr;
    auto record = std::move(found->second);
    records_.erase(found);
    return record;
  }

  // The handle is gone. The buffers stay until the transfer is over: a backend need not hold them
  // itself.
  void drop(int64_t key) {
    auto record = take(key);
    if (!record) return;
    const std::lock_guard lock(mutex_);
    dropped_.push_back(std::move(record));
    sweep();
  }

  int64_t size() {
    const std::lock_guard lock(mutex_);
    sweep();
    return static_cast<int64_t>(records_.size() + dropped_.size());
  }

 private:
  void sweep() {
    dropped_.erase(std::remove_if(dropped_.begin(), dropped_.end(),
                                  [](const auto& record) { return record->done(); }),
                   dropped_.end());
  }

  std::mutex mutex_;
  std::unordered_map<int64_t, RecordPtr> records_;
  std::vector<RecordPtr> dropped_;
  int64_t last_ = 0;
};

// Never destroyed: handles may outlive static objects.
Table& table() {
  static auto* const instance = new Table;
  return *instance;
}

int64_t keyOf(const at::Tensor& handle) {
  TORCH_CHECK_VALUE(
      handle.device().is_cpu() && handle.scalar_type() == at::kLong && handle.numel() == 1,
      "byway: a handle is one int64 on the CPU, got ", handle.toString(), " of ", handle.numel(),
      " elements");
  return *handle.const_data_ptr<int64_t>();
}

}  // namespace

at::Tensor startTraced(TracedCall call) {
  auto works = issue(call, true);
  return holdTraced(std::move(call), std::move(works));
}

at::Tensor holdTraced(TracedCall call, std::vector<c10::intrusive_ptr<c10d::Work>> works) {
  const auto key = table().add(std::make_shared<Record>(Record{std::move(call), std::move(works)}));
  auto* const memory = new int64_t(key);
  const auto free = [key](void* data) {
    table().drop(key);
    delete static_cast<int64_t*>(data);
  };
  return at::from_blob(memory, {1}, free, at::TensorOptions().dtype(at::kLong));
}

void finishTraced(const at::Tensor& handle, const std::vector<at::Tensor>& outs,
                  std::chrono::milliseconds timeout) {
  const auto key = keyOf(handle);
  const auto record = table().find(key);
  if (!record) return;
  waitAll(record->works, timeout);
  table().take(key);
  const auto& results = record->call.outs;
  TORCH_CHECK_VALUE(outs.size() <= results.size(), "byway: a ", record->call.kind, " has ",
                    results.size(), " results, got ", outs.size(), " tensors for them");
  for (size_t i = 0; i < outs.size(); ++i) {
    // Results that were viewed as complex were given as pairs of reals.
    const auto result = results[i].is_complex() && !outs[i].is_complex()
                            ? at::view_as_real(results[i])
                            : results[i];
    outs[i].copy_(result);
  }
}

bool isTracedDone(const at::Tensor& handle) {
  const auto record = table().find(keyOf(handle));
  return !record || record->done();
}

int64_t tracedInFlight() { return table().size(); }

}  // namespace byway::pytorch
