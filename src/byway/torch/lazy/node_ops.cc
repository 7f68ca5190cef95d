// SPDX-License-Identifier: BSD-3-Clause
// What the nodes of the graph do when it runs. Without alias annotations: results are always new.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>

#include <torch/library.h>

#include "byway/torch/lazy/record_table.h"

namespace byway::pytorch::lazy {
namespace {

std::int64_t valueOf(const at::Tensor& number) { return *number.const_data_ptr<std::int64_t>(); }
at::Tensor asTensor(std::int64_t number) {
  at::Tensor tensor = at::empty({1}, at::kLong);
  *tensor.mutable_data_ptr<std::int64_t>() = number;
  return tensor;
}

// The interpreter that runs the graph turns errors into text; the original is kept for flush().
template <typename Fn>
void remembered(const Record& record, const Fn& fn) {
  try {
    fn();
  } catch (...) {
    RecordTable::instance().fail(record, std::current_exception());
    throw;
  }
}

std::shared_ptr<Record> runRecord(std::int64_t sequence, Tensors inputs) {
  auto& table = RecordTable::instance();
  const auto record = table.running(sequence);
  if (record->hasRun()) {
    table.countReplay();
  } else {
    table.countExecuted(*record);
  }
  remembered(*record, [&] { record->run(std::move(inputs)); });
  return record;
}

// Boxed, so that values which only this node uses are its own: the list gives them away.
Tensors takeInputs(torch::jit::Stack& stack) {
  c10::List<at::Tensor> list = torch::jit::pop(stack).toTensorList();
  Tensors inputs;
  inputs.reserve(list.size());
  const bool isShared = list.use_count() > 1;
  for (std::size_t i = 0; i < list.size(); ++i) {
    inputs.push_back(isShared ? list.get(i) : list.extract(i));
  }
  return inputs;
}

void run(const c10::OperatorHandle& /*op*/, torch::jit::Stack* stack) {
  Tensors inputs = takeInputs(*stack);
  const std::int64_t sequence = valueOf(torch::jit::pop(*stack).toTensor());
  const at::AutoDispatchBelowADInplaceOrView withoutAutograd;
  c10::List<at::Tensor> results({asTensor(sequence + 1)});
  for (const at::Tensor& result : runRecord(sequence, std::move(inputs))->results()) {
    results.push_back(result);
  }
  stack->emplace_back(std::move(results));
}

void start(const c10::OperatorHandle& /*op*/, torch::jit::Stack* stack) {
  Tensors inputs = takeInputs(*stack);
  const std::int64_t sequence = valueOf(torch::jit::pop(*stack).toTensor());
  runRecord(sequence, std::move(inputs));
  stack->emplace_back(c10::List<at::Tensor>({asTensor(sequence + 1), asTensor(sequence)}));
}

std::shared_ptr<Record> finishRecord(const at::Tensor& handle) {
  const auto record = RecordTable::instance().running(valueOf(handle));
  remembered(*record, [&] { record->finish(); });
  return record;
}

Tensors finish(const at::Tensor& handle) { return finishRecord(handle)->results(); }

Tensors await(const at::Tensor& token, const at::Tensor& handle) {
  finishRecord(handle);
  return {token.clone()};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(byway_lazy, library) {
  library.def("run(Tensor token, Tensor[] inputs) -> Tensor[]",
              torch::CppFunction::makeFromBoxedFunction<&run>());
  library.def("start(Tensor token, Tensor[] inputs) -> Tensor[]",
              torch::CppFunction::makeFromBoxedFunction<&start>());
  library.def("finish(Tensor handle) -> Tensor[]", &finish);
  library.def("await(Tensor token, Tensor handle) -> Tensor[]", &await);
}

}  // namespace byway::pytorch::lazy
