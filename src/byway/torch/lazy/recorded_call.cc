// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/lazy/recorded_call.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <utility>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace byway::pytorch::lazy {

TensorShape shapeOf(const at::Tensor& tensor) {
  return {tensor.sizes().vec(), tensor.scalar_type()};
}

RecordedCall::RecordedCall(const c10::OperatorHandle& op, const OpRoles& roles,
                           const torch::jit::Stack& stack)
    : op_(op), name_(roles.op) {
  const std::size_t count = op.schema().arguments().size();
  arguments_.assign(stack.end() - static_cast<std::ptrdiff_t>(count), stack.end());
  for (std::size_t i = 0; i < roles.roles.size(); ++i) {
    takeArgument(i, roles.roles[i], arguments_[i]);
  }
}

RecordedCall::RecordedCall(const c10::OperatorHandle& op, const torch::jit::Stack& stack,
                           std::vector<TensorShape> outputs, std::function<void(Tensors&)> finish)
    : op_(op), name_(op.schema().name()), finish_(std::move(finish)) {
  const std::size_t count = op.schema().arguments().size();
  arguments_.assign(stack.end() - static_cast<std::ptrdiff_t>(count), stack.end());
  for (std::size_t i = 0; i < count; ++i) {
    if (arguments_[i].isTensor() || arguments_[i].isTensorList()) {
      takeArgument(i, Role::In, arguments_[i]);
    }
  }
  outputShapes_ = std::move(outputs);
}

void RecordedCall::takeArgument(std::size_t index, Role role, c10::IValue& value) {
  Part part{index, role, Layout::One, {}, {}};
  if (value.isTensor()) {
    takeTensor(part, value.toTensor());
  } else if (value.isTensorList()) {
    part.layout = Layout::List;
    const Tensors tensors = value.toTensorVector();
    part.lengths = {tensors.size()};
    for (const at::Tensor& tensor : tensors) takeTensor(part, tensor);
  } else {
    part.layout = Layout::Nested;
    for (const c10::IValue& inner : value.toListRef()) {
      const Tensors tensors = inner.toTensorVector();
      part.lengths.push_back(tensors.size());
      for (const at::Tensor& tensor : tensors) takeTensor(part, tensor);
    }
  }
  value = c10::IValue();
  parts_.push_back(std::move(part));
}

void RecordedCall::takeTensor(Part& part, const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.defined() && tensor.device().type() == c10::DeviceType::Lazy,
                    "byway lazy: ", name_, " was given a tensor on ",
                    tensor.defined() ? tensor.device().str() : std::string("no device"),
                    " beside lazy ones; give it tensors of one device");
  part.shapes.push_back(shapeOf(tensor));
  if (part.role != Role::Out) {
    inputs_.push_back(tensor);
    ++inputCount_;
  }
  if (part.role != Role::In) {
    outputs_.push_back(tensor);
    outputShapes_.push_back(part.shapes.back());
  }
}

void RecordedCall::dropTensors() {
  inputs_.clear();
  outputs_.clear();
}

c10::IValue RecordedCall::rebuilt(const Part& part, const Tensors& tensors) {
  switch (part.layout) {
    case Layout::One:
      return tensors.at(0);
    case Layout::List:
      return c10::List<at::Tensor>(tensors);
    case Layout::Nested:
      break;
  }
  c10::List<c10::List<at::Tensor>> outer;
  auto next = tensors.begin();
  for (const std::size_t length : part.lengths) {
    c10::List<at::Tensor> inner;
    for (std::size_t i = 0; i < length; ++i) inner.push_back(*next++);
    outer.push_back(std::move(inner));
  }
  return outer;
}

namespace {

// For a call that changes its tensor: values of the graph may be shared with its other nodes, with
// lazy tensors and with what a record keeps.
at::Tensor owned(at::Tensor value) {
  const bool isShared = value.use_count() > 1 || value.storage().use_count() > 1;
  return !isShared && value.is_contiguous() ? std::move(value)
                                            : value.clone(at::MemoryFormat::Contiguous);
}

}  // namespace

RecordedCall::Result RecordedCall::make(Tensors inputs, bool shapesOnly) const {
  Result result;
  torch::jit::Stack stack = arguments_;
  auto input = inputs.begin();
  for (const Part& part : parts_) {
    Tensors tensors;
    for (const TensorShape& shape : part.shapes) {
      if (shapesOnly || part.role == Role::Out) {
        tensors.push_back(at::empty(shape.sizes, shape.dtype));
      } else if (part.role == Role::InOut) {
        tensors.push_back(owned(std::move(*input++)));
      } else {
        tensors.push_back((input++)->contiguous());
      }
      if (part.role != Role::In) result.outputs.push_back(tensors.back());
    }
    stack[part.argument] = rebuilt(part, tensors);
  }
  op_.callBoxed(stack);
  if (finish_) {
    for (const c10::IValue& value : stack) {
      if (value.isTensor()) result.outputs.push_back(value.toTensor());
      if (value.isTensorList()) result.outputs = value.toTensorVector();
    }
    finish_(result.outputs);
  } else {
    result.work = stack.back().toCustomClass<c10d::Work>();
  }
  return result;
}

const c10::IValue* RecordedCall::argument(const std::string& name) const {
  const auto index = op_.schema().argumentIndexWithName(name);
  return index ? &arguments_.at(static_cast<std::size_t>(*index)) : nullptr;
}

namespace {

void append(std::string& bytes, std::int64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// False for what may hide more than it shows.
bool appendArgument(std::string& bytes, const std::string& name, const c10::IValue& value) {
  if (value.isNone()) return true;
  if (value.isBool()) {
    append(bytes, value.toBool() ? 1 : 0);
  } else if (value.isInt()) {
    append(bytes, value.toInt());
  } else if (value.isIntList()) {
    const auto numbers = value.toIntVector();
    append(bytes, static_cast<std::int64_t>(numbers.size()));
    for (const std::int64_t number : numbers) append(bytes, number);
  } else if (name == "reduce_op") {
    const auto op = value.toCustomClass<c10d::ReduceOp>();
    append(bytes, static_cast<std::int64_t>(op->op_));
    return op->op_ != c10d::ReduceOp::PREMUL_SUM;
  } else if (name == "process_group") {
    const auto group = value.toCustomClass<c10d::ProcessGroup>();
    append(bytes, static_cast<std::int64_t>(group->getID()));
    bytes += group->getGroupName();
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::optional<std::string> RecordedCall::signature() const {
  std::string bytes = name_;
  const auto& named = op_.schema().arguments();
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (!appendArgument(bytes, named[i].name(), arguments_[i])) return std::nullopt;
  }
  for (const Part& part : parts_) {
    append(bytes, static_cast<std::int64_t>(part.lengths.size()));
    for (const std::size_t length : part.lengths) append(bytes, static_cast<std::int64_t>(length));
    for (const TensorShape& shape : part.shapes) {
      append(bytes, static_cast<std::int64_t>(shape.dtype));
      append(bytes, static_cast<std::int64_t>(shape.sizes.size()));
      for (const std::int64_t size : shape.sizes) append(bytes, size);
    }
  }
  return bytes;
}

void RecordedCall::replaceArgument(const std::string& name, c10::IValue value) {
  const auto index = op_.schema().argumentIndexWithName(name);
  if (index) arguments_.at(static_cast<std::size_t>(*index)) = std::move(value);
}

void RecordedCall::pushReturns(const c10::OperatorHandle& op, const c10::IValue& first,
                               const c10::intrusive_ptr<c10d::Work>& work,
                               torch::jit::Stack& stack) {
  torch::jit::drop(stack, op.schema().arguments().size());
  if (op.schema().returns().size() == 2) stack.push_back(first);
  stack.emplace_back(work);
}

}  // namespace byway::pytorch::lazy
