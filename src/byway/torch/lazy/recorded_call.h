// SPDX-License-Identifier: BSD-3-Clause
// A call of an operator taken apart: everything but its tensors, and where these belong, so that it
// can be made later with others.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "byway/torch/lazy/roles.h"

namespace byway::pytorch::lazy {

using Tensors = std::vector<at::Tensor>;

struct TensorShape {
  std::vector<std::int64_t> sizes;
  at::ScalarType dtype;
};
TensorShape shapeOf(const at::Tensor& tensor);

class RecordedCall {
 public:
  struct Result {
    Tensors outputs;
    c10::intrusive_ptr<c10d::Work> work;  // null for operators that return their results
  };

  // Of a c10d operator: takes its tensors out of the arguments. Throws for what is no call of
  // strided tensors of one device.
  RecordedCall(const c10::OperatorHandle& op, const OpRoles& roles, const torch::jit::Stack& stack);
  // Of an operator without effect on its arguments, which are all inputs; `outputs` as it returns
  // them. `finish` turns what the operator returned into finished results.
  RecordedCall(const c10::OperatorHandle& op, const torch::jit::Stack& stack,
               std::vector<TensorShape> outputs, std::function<void(Tensors&)> finish);

  const std::string& name() const { return name_; }
  // The user's tensors, until dropTensors(): a record must not keep lazy tensors alive.
  const Tensors& inputs() const { return inputs_; }
  const Tensors& outputs() const { return outputs_; }
  void dropTensors();
  const std::vector<TensorShape>& outputShapes() const { return outputShapes_; }
  std::size_t inputCount() const { return inputCount_; }

  // Makes the call with CPU tensors. `inputs` that somebody else holds are only read. With
  // `shapesOnly` tensors of the recorded shapes and no contents take the place of all of them.
  Result make(Tensors inputs, bool shapesOnly = false) const;
  // An argument by the name that the schema gives it; null without.
  const c10::IValue* argument(const std::string& name) const;
  // All that its arguments' checks depend on, as bytes; nothing where that is not known.
  std::optional<std::string> signature() const;
  void replaceArgument(const std::string& name, c10::IValue value);
  // What the operator returns where its outputs are the caller's own tensors.
  static void pushReturns(const c10::OperatorHandle& op, const c10::IValue& first,
                          const c10::intrusive_ptr<c10d::Work>& work, torch::jit::Stack& stack);

 private:
  enum class Layout : char { One, List, Nested };
  struct Part {
    std::size_t argument;
    Role role;
    Layout layout;
    std::vector<std::size_t> lengths;  // of the list, or of each inner list
    std::vector<TensorShape> shapes;
  };

  void takeArgument(std::size_t index, Role role, c10::IValue& value);
  void takeTensor(Part& part, const at::Tensor& tensor);
  static c10::IValue rebuilt(const Part& part, const Tensors& tensors);

  c10::OperatorHandle op_;
  std::string name_;
  torch::jit::Stack arguments_;  // None where tensors were
  std::vector<Part> parts_;
  std::vector<TensorShape> outputShapes_;
  std::size_t inputCount_ = 0;
  Tensors inputs_, outputs_;
  std::function<void(Tensors&)> finish_;
};

}  // namespace byway::pytorch::lazy
