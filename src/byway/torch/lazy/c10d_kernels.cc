// SPDX-License-Identifier: BSD-3-Clause
// torch.distributed's operators on lazy tensors: one kernel records them all.
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>

#include <string>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/library.h>

#include "byway/torch/lazy/check.h"
#include "byway/torch/lazy/flush.h"
#include "byway/torch/lazy/lazy_work.h"
#include "byway/torch/lazy/record_table.h"
#include "byway/torch/torch_version.h"

namespace byway::pytorch::lazy {
namespace {

namespace fn = at::functionalization::impl;

std::string_view withoutNamespace(const std::string& name) {
  const std::size_t colon = name.rfind(':');
  return std::string_view(name).substr(colon == std::string::npos ? 0 : colon + 1);
}

Tensors rawInputs(const RecordedCall& call) {
  Tensors raw;
  for (const at::Tensor& input : call.inputs()) raw.push_back(rawOf(input));
  return raw;
}

// A factor of PREMUL_SUM that is a lazy tensor itself is needed as a number: its graph runs here.
void bringFactor(RecordedCall& call) {
  const c10::IValue* argument = call.argument("reduce_op");
  if (!argument) return;
  const auto op = argument->toCustomClass<c10d::ReduceOp>();
  if (op->op_ != c10d::ReduceOp::PREMUL_SUM || !op->supplement_) return;
  const auto* factor = dynamic_cast<const PreMulSum*>(op->supplement_.get());
  if (!factor || !factor->tensor_factor.defined() || !factor->tensor_factor.is_lazy()) return;
  call.replaceArgument(
      "reduce_op", c10::make_intrusive<c10d::ReduceOp>(makePreMulSum(factor->tensor_factor.cpu())));
}

// Which rank will send is known only once it has: received at once.
c10::intrusive_ptr<c10d::Work> recvFromAny(const RecordedCall& call) {
  flushCalls();
  const RecordedCall::Result result = call.make({}, true);
  result.work->wait();
  for (std::size_t i = 0; i < call.outputs().size(); ++i) {
    writeBack(call.outputs()[i], rawOf(result.outputs[i].to(call.outputs()[i].device())));
  }
  return result.work;
}

bool isAsync(const OpRoles& roles, const RecordedCall& call) {
  if (roles.isMessage) return true;
  const c10::IValue* async = call.argument("async_op");
  return async && async->toBool();
}

c10::intrusive_ptr<c10d::Work> recordLazy(const OpRoles& roles, RecordedCall call) {
  RecordTable::instance().checkUsable();
  bringFactor(call);
  checkOrCallEagerly(call);
  if (roles.type == c10d::OpType::RECVANYSOURCE) return recvFromAny(call);
  const Tensors inputs = rawInputs(call);
  const Tensors outputs = call.outputs();
  std::optional<StartedCall> started;
  if (isAsync(roles, call)) {
    started = Recorder::instance().recordStart(std::move(call), inputs);
  } else {
    const Tensors results = Recorder::instance().record(std::move(call), inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) writeBack(outputs[i], results[i]);
  }
  afterRecording();
  return c10::make_intrusive<LazyWork>(roles.type, std::move(started), outputs);
}

void recordKernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const OpRoles* roles = rolesOf(withoutNamespace(op.schema().name()));
  TORCH_INTERNAL_ASSERT(roles, op.schema().name());
  const c10::IValue first = torch::jit::peek(*stack, 0, op.schema().arguments().size());
  const auto work = recordLazy(*roles, RecordedCall(op, *roles, *stack));
  RecordedCall::pushReturns(op, first, work, *stack);
}

bool isLazy(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::DeviceType::Lazy;
}

// Applies fn to each tensor in place; true when it holds for one.
template <typename Fn>
bool anyTensor(const c10::IValue& value, const Fn& fn) {
  if (value.isTensor()) return fn(value.toTensor());
  if (!value.isList()) return false;
  for (const c10::IValue& inner : value.toListRef()) {
    if (anyTensor(inner, fn)) return true;
  }
  return false;
}

c10::IValue unwrapped(const c10::IValue& value) {
  if (value.isTensor()) {
    if (!fn::isFunctionalTensor(value.toTensor())) return value;
    fn::sync(value.toTensor());
    return fn::from_functional_tensor(value.toTensor());
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> all;
    for (const at::Tensor& tensor : value.toTensorVector())
      all.push_back(unwrapped(tensor).toTensor());
    return all;
  }
  if (!value.isList() || value.toListRef().empty() || !value.toListRef()[0].isTensorList())
    return value;
  c10::List<c10::List<at::Tensor>> outer;
  for (const c10::IValue& inner : value.toListRef())
    outer.push_back(unwrapped(inner).toTensorList());
  return outer;
}

// Tensors of other devices under functionalization: as torch's own fallback does.
void callBelow(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::size_t count = op.schema().arguments().size();
  const c10::IValue first = torch::jit::peek(*stack, 0, count);
  for (std::size_t i = 0; i < count; ++i) {
    c10::IValue& argument = torch::jit::peek(*stack, i, count);
    argument = unwrapped(argument);
  }
  {
    const at::AutoDispatchSkipFunctionalize below;
    op.callBoxed(*stack);
  }
  if (op.schema().returns().size() == 2) torch::jit::peek(*stack, 0, 2) = first;
}

// Where tensors of inference mode come: they have no autograd key.
void functionalizeKernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::size_t count = op.schema().arguments().size();
  bool lazy = false;
  for (std::size_t i = 0; i < count && !lazy; ++i) {
    lazy = anyTensor(torch::jit::peek(*stack, i, count), isLazy);
  }
  if (lazy) {
    recordKernel(op, stack);
  } else {
    callBelow(op, stack);
  }
}

template <void kernel(const c10::OperatorHandle&, torch::jit::Stack*)>
void registerAll(torch::Library& library) {
  for (const OpRoles& roles : allRoles()) {
    library.impl(std::string(roles.op).c_str(),
                 torch::CppFunction::makeFromBoxedFunction<kernel>());
  }
}

}  // namespace

TORCH_LIBRARY_IMPL(c10d, AutogradLazy, library) { registerAll<recordKernel>(library); }
TORCH_LIBRARY_IMPL(c10d, Functionalize, library) { registerAll<functionalizeKernel>(library); }
TORCH_LIBRARY_IMPL(c10d, Lazy, library) { registerAll<recordKernel>(library); }

}  // namespace byway::pytorch::lazy
