// SPDX-License-Identifier: BSD-3-Clause
// Functional collectives (_c10d_functional) on lazy tensors.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>

#include <torch/library.h>

#include "byway/torch/lazy/flush.h"
#include "byway/torch/lazy/record_table.h"
#include "byway/torch/lazy/recorder.h"

namespace byway::pytorch::lazy {
namespace {

at::Tensor metaOf(const at::Tensor& tensor) {
  return at::empty(tensor.sizes(), tensor.options().device(c10::DeviceType::Meta));
}

// What the operator returns, by its own kernel for tensors without contents.
std::vector<TensorShape> resultShapes(const c10::OperatorHandle& op,
                                      const torch::jit::Stack& arguments) {
  torch::jit::Stack stack = arguments;
  for (c10::IValue& value : stack) {
    if (value.isTensor()) {
      value = metaOf(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> all;
      for (const at::Tensor& tensor : value.toTensorVector()) all.push_back(metaOf(tensor));
      value = all;
    }
  }
  op.callBoxed(stack);
  if (stack.at(0).isTensor()) return {shapeOf(stack[0].toTensor())};
  std::vector<TensorShape> shapes;
  for (const at::Tensor& tensor : stack[0].toTensorVector()) shapes.push_back(shapeOf(tensor));
  return shapes;
}

// On CPU tensors, when the step runs.
void waitEach(Tensors& tensors) {
  static const auto wait = c10::Dispatcher::singleton()
                               .findSchemaOrThrow("_c10d_functional::wait_tensor", "")
                               .typed<at::Tensor(const at::Tensor&)>();
  for (at::Tensor& tensor : tensors) tensor = wait.call(tensor);
}

torch::jit::Stack takeArguments(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  return torch::jit::pop(stack, op.schema().arguments().size());
}

Tensors recordFunctional(const c10::OperatorHandle& op, const torch::jit::Stack& arguments) {
  RecordTable::instance().checkUsable();
  RecordedCall call(op, arguments, resultShapes(op, arguments), waitEach);
  Tensors inputs;
  for (const at::Tensor& input : call.inputs()) inputs.push_back(rawOf(input));
  Tensors results = Recorder::instance().record(std::move(call), inputs);
  afterRecording();
  return results;
}

// Below functionalization.
void functionalKernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const Tensors results = recordFunctional(op, takeArguments(op, *stack));
  if (op.schema().returns()[0].type()->isSubtypeOf(*c10::TensorType::get())) {
    stack->emplace_back(results.at(0));
  } else {
    stack->emplace_back(c10::List<at::Tensor>(results));
  }
}

// The operator of the same name without the trailing underscore, then its results in the tensors.
void inPlaceKernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  std::string name = op.schema().name();
  name.pop_back();
  const auto functional = c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "");
  const torch::jit::Stack arguments = takeArguments(op, *stack);
  const Tensors results = recordFunctional(functional, arguments);
  const c10::IValue& target = arguments.at(0);
  const Tensors tensors = target.isTensor() ? Tensors{target.toTensor()} : target.toTensorVector();
  for (std::size_t i = 0; i < tensors.size(); ++i) writeBack(tensors[i], results.at(i));
  stack->push_back(target);
}

at::Tensor waitTensor(const at::Tensor& tensor) { return tensor; }

}  // namespace

TORCH_LIBRARY_IMPL(_c10d_functional, Lazy, library) {
  for (const char* op : {"all_reduce", "all_reduce_coalesced", "all_gather_into_tensor",
                         "all_gather_into_tensor_coalesced", "reduce_scatter_tensor",
                         "reduce_scatter_tensor_coalesced", "all_to_all_single", "broadcast"}) {
    library.impl(op, torch::CppFunction::makeFromBoxedFunction<&functionalKernel>());
  }
  library.impl("wait_tensor", &waitTensor);
}

TORCH_LIBRARY_IMPL(_c10d_functional, AutogradLazy, library) {
  for (const char* op : {"all_reduce_", "all_reduce_coalesced_", "broadcast_"}) {
    library.impl(op, torch::CppFunction::makeFromBoxedFunction<&inPlaceKernel>());
  }
}

}  // namespace byway::pytorch::lazy
