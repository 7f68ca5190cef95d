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

std::shared_ptr<Record> runRecord(std::int64_t sequence, const Tensors& inputs) {
  auto& table = RecordTable::instance();
  const auto record = table.running(sequence);
  if (record->hasRun()) {
    table.countReplay();
  } else {
    table.countExecuted(*record);
  }
  remembered(*record, [&] { record->run(inputs); });
  return record;
}

Tensors run(const at::Tensor& token, at::TensorList inputs) {
  const std::int64_t sequence = valueOf(token);
  const at::AutoDispatchBelowADInplaceOrView withoutAutograd;
  Tensors results = runRecord(sequence, inputs.vec())->results();
  results.insert(results.begin(), asTensor(sequence + 1));
  return results;
}

Tensors start(const at::Tensor& token, at::TensorList inputs) {
  const std::int64_t sequence = valueOf(token);
  runRecord(sequence, inputs.vec());
  return {asTensor(sequence + 1), asTensor(sequence)};
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
  library.def("run(Tensor token, Tensor[] inputs) -> Tensor[]", &run);
  library.def("start(Tensor token, Tensor[] inputs) -> Tensor[]", &start);
  library.def("finish(Tensor handle) -> Tensor[]", &finish);
  library.def("await(Tensor token, Tensor handle) -> Tensor[]", &await);
}

}  // namespace byway::pytorch::lazy
