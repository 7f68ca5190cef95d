// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/lazy/recorder.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/full.h>

#include <mutex>
#include <utility>

#include <torch/csrc/lazy/core/tensor_impl.h>

#include "byway/torch/gil.h"
#include "byway/torch/lazy/record_table.h"

namespace byway::pytorch::lazy {

namespace lz = torch::lazy;
namespace fn = at::functionalization::impl;

namespace {

lz::Shape numberShape() { return {at::kLong, {1}}; }

std::vector<lz::Shape> lazyShapes(const std::vector<TensorShape>& shapes) {
  std::vector<lz::Shape> all;
  for (const TensorShape& shape : shapes) all.emplace_back(shape.dtype, shape.sizes);
  return all;
}

// `first`: of the node's outputs.
Tensors tensorsOf(const lz::NodePtr& node, std::size_t first, const lz::BackendDevice& device) {
  Tensors tensors;
  for (std::size_t i = first; i < node->num_outputs(); ++i) {
    tensors.push_back(
        lz::CreateAtenFromLtcTensor(lz::LazyTensor::Create(lz::Value(node, i), device)));
  }
  return tensors;
}

std::recursive_mutex& recordingMutex() {
  static auto* const mutex = new std::recursive_mutex();
  return *mutex;
}

lz::BackendDevice deviceOf(const Tensors& inputs) {
  if (!inputs.empty()) return lz::GetLtcTensor(inputs[0])->GetDevice();
  return lz::atenDeviceToBackendDevice(c10::Device(c10::kLazy, 0));
}

}  // namespace

RecordingLock::RecordingLock() {
  if (recordingMutex().try_lock()) return;
  const WithoutGil released;  // whoever has it may need the interpreter
  recordingMutex().lock();
}

RecordingLock::~RecordingLock() { recordingMutex().unlock(); }

// Never destroyed: destroying a lazy tensor needs the executor.
Recorder& Recorder::instance() {
  static auto* const recorder = new Recorder();
  return *recorder;
}

lz::Value Recorder::token(const lz::BackendDevice& device) {
  if (!token_) {
    const at::Tensor next = at::full({1}, RecordTable::instance().nextSequence(), at::kLong);
    token_ = lz::LazyTensor::Create(next, device);
  }
  // A token without a graph: a step has run, and with it what began in it.
  if (!token_->CurrentIrValue()) {
    started_.clear();
    callsFirst_ = callsFirst_ && CollNode::anyUnwaited();
  }
  return token_->GetIrValue();
}

// A new tensor each time, so that among the graph's roots it stands where the call does.
void Recorder::setToken(lz::Value value, const lz::BackendDevice& device) {
  if (callsFirst_) early_->SetIrValue(value);
  token_ = lz::LazyTensor::Create(std::move(value), device);
}

Tensors Recorder::record(RecordedCall call, const Tensors& inputs) {
  const RecordingLock lock;
  const auto device = deviceOf(inputs);
  std::vector<lz::Value> operands = {token(device)};
  for (const at::Tensor& input : inputs) operands.push_back(lz::GetLtcTensor(input)->GetIrValue());
  std::vector<lz::Shape> shapes = lazyShapes(call.outputShapes());
  shapes.insert(shapes.begin(), numberShape());
  const auto record = RecordTable::instance().add(std::move(call), false);
  const lz::NodePtr node = std::make_shared<CollNode>(
      NodeKind::Run, operands, std::move(shapes), std::make_shared<RecordUse>(record->sequence()));
  setToken(lz::Value(node, 0), device);
  return tensorsOf(node, 1, device);
}

StartedCall Recorder::recordStart(RecordedCall call, const Tensors& inputs) {
  const RecordingLock lock;
  const auto device = deviceOf(inputs);
  std::vector<lz::Value> operands = {token(device)};
  for (const at::Tensor& input : inputs) operands.push_back(lz::GetLtcTensor(input)->GetIrValue());
  const auto record = RecordTable::instance().add(std::move(call), true);
  const auto use = std::make_shared<RecordUse>(record->sequence());
  const lz::NodePtr node = std::make_shared<CollNode>(
      NodeKind::Start, operands, std::vector<lz::Shape>{numberShape(), numberShape()}, use);
  setToken(lz::Value(node, 0), device);
  started_.push_back(lz::LazyTensor::Create(lz::Value(node, 1), device));
  return {use, started_.back(), record->call().outputShapes()};
}

Tensors Recorder::recordFinish(const StartedCall& started, bool isUnwaited) {
  const RecordingLock lock;
  const lz::NodePtr node = std::make_shared<CollNode>(
      NodeKind::Finish, std::vector<lz::Value>{started.handle->GetIrValue()},
      lazyShapes(started.shapes), started.use, isUnwaited);
  return tensorsOf(node, 0, started.handle->GetDevice());
}

void Recorder::recordAwait(const StartedCall& started) {
  const RecordingLock lock;
  const auto device = started.handle->GetDevice();
  const lz::NodePtr node = std::make_shared<CollNode>(
      NodeKind::Await, std::vector<lz::Value>{token(device), started.handle->GetIrValue()},
      std::vector<lz::Shape>{numberShape()}, started.use);
  setToken(lz::Value(node, 0), device);
}

void Recorder::putCallsFirst() {
  const RecordingLock lock;
  const auto device = deviceOf({});
  const lz::Value now = token(device);
  if (!early_) {
    early_ = lz::LazyTensor::Create(now, device);
  } else {
    early_->SetIrValue(now);
  }
  callsFirst_ = true;
}

void Recorder::reset() {
  const RecordingLock lock;
  early_ = nullptr;
  callsFirst_ = false;
  started_.clear();
  token_ = nullptr;
}

at::Tensor rawOf(const at::Tensor& tensor) {
  if (!fn::isFunctionalTensor(tensor)) return tensor;
  const at::AutoDispatchBelowADInplaceOrView below;
  fn::sync(tensor);
  return fn::from_functional_tensor(tensor);
}

void writeBack(const at::Tensor& tensor, const at::Tensor& value) {
  const RecordingLock lock;
  if (!fn::isFunctionalTensor(tensor)) {
    const auto destination = lz::GetLtcTensor(tensor);
    destination->SetInPlaceIrValue(lz::GetLtcTensor(value)->GetIrValue());
    return;
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  fn::replace_(tensor, value);
  fn::commit_update(tensor);
  fn::sync(tensor);
}

}  // namespace byway::pytorch::lazy
