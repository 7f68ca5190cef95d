// SPDX-License-Identifier: BSD-3-Clause
// Puts calls into the lazy graph, in order, and their results into the user's tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include <torch/csrc/lazy/core/tensor.h>

#include "byway/torch/lazy/coll_node.h"
#include "byway/torch/lazy/recorded_call.h"

namespace byway::pytorch::lazy {

// A call that was begun: what is needed to wait for it.
struct StartedCall {
  std::shared_ptr<RecordUse> use;
  torch::lazy::LazyTensorPtr handle;
  std::vector<TensorShape> shapes;  // of its results
};

// Held while Byway makes, changes or computes lazy tensors. torch's executor looks at all live
// tensors of the process without a lock of its own, so a thread that computes could meet one that
// another thread is about to change.
class RecordingLock {
 public:
  RecordingLock();
  ~RecordingLock();
  RecordingLock(const RecordingLock&) = delete;
  RecordingLock& operator=(const RecordingLock&) = delete;
};

class Recorder {
 public:
  static Recorder& instance();

  // The results, as tensors below functionalization. `inputs` are such tensors too.
  Tensors record(RecordedCall call, const Tensors& inputs);
  StartedCall recordStart(RecordedCall call, const Tensors& inputs);
  Tensors recordFinish(const StartedCall& started, bool isUnwaited);
  // For calls without results: the calls recorded from here on come after it.
  void recordAwait(const StartedCall& started);
  // While there are unwaited nodes (coll_node.h), calls are made before values recorded from here
  // on are computed, as far as they do not need them.
  void putCallsFirst();
  void reset();

 private:
  torch::lazy::Value token(const torch::lazy::BackendDevice& device);
  void setToken(torch::lazy::Value value, const torch::lazy::BackendDevice& device);

  torch::lazy::LazyTensorPtr token_;
  // Handles of calls that were begun in this step. Live tensors become the graph's roots, in the
  // order in which they were made: so a call begins before the computation that the user wrote
  // after it.
  std::vector<torch::lazy::LazyTensorPtr> started_;
  // The token once more while callsFirst_, as a root that stands before what waits for dropped
  // calls: made before the first of them, and kept.
  torch::lazy::LazyTensorPtr early_;
  bool callsFirst_ = false;
};

// The tensor below functionalization that holds a user's tensor's value.
at::Tensor rawOf(const at::Tensor& tensor);
// Makes `value`, a tensor below functionalization, the contents of the user's tensor and so of its
// base and views. Unlike copy_ it computes nothing.
void writeBack(const at::Tensor& tensor, const at::Tensor& value);

}  // namespace byway::pytorch::lazy
