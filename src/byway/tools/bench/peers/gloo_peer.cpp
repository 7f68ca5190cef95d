// SPDX-License-Identifier: BSD-3-Clause
// One rank of Gloo under comparison: a c10d process group that Python made, called from here.
// Compiled by the bench as a Python extension against the torch at hand.
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/extension.h>

#include "peer_loop.h"

namespace {

using byway_peers::Cell;

at::ScalarType typeOf(const std::string& dtype) {
  if (dtype == "float32") return at::kFloat;
  if (dtype == "float64") return at::kDouble;
  if (dtype == "int32") return at::kInt;
  if (dtype == "int64") return at::kLong;
  if (dtype == "int8") return at::kChar;
  if (dtype == "uint8") return at::kByte;
  throw std::runtime_error("no type for " + dtype);
}

class Gloo : public byway_peers::Library {
 public:
  explicit Gloo(c10::intrusive_ptr<c10d::ProcessGroup> group) : group_(std::move(group)) {}

  int rank() const override { return group_->getRank(); }
  int size() const override { return group_->getSize(); }
  void prepare(const Cell& /*cell*/) override { lists_.clear(); }
  void call(const Cell& cell, void* in, void* out) override {
    const std::string& what = cell.collective;
    if (lists_.empty()) makeTensors(cell, in, out);
    if (what == "allreduce") {
      group_->allreduce(outputs_)->wait();
    } else if (what == "broadcast") {
      group_->broadcast(outputs_)->wait();
    } else if (what == "reduce") {
      group_->reduce(outputs_)->wait();
    } else if (what == "all-gather") {
      group_->_allgather_base(outputs_[0], inputs_[0])->wait();
    } else if (what == "reduce-scatter") {
      group_->_reduce_scatter_base(outputs_[0], inputs_[0])->wait();
    } else if (what == "all-to-all") {
      group_->alltoall_base(outputs_[0], inputs_[0], even_, even_)->wait();
    } else if (what == "scatter") {
      group_->scatter(outputs_, lists_[0])->wait();
    } else if (what == "gather") {
      group_->gather(lists_[0], inputs_)->wait();
    } else {
      throw std::runtime_error("no " + what);
    }
  }

 private:
  static at::Tensor tensor(const Cell& cell, void* data, std::size_t count) {
    return at::from_blob(data, {static_cast<std::int64_t>(count)},
                         at::TensorOptions().dtype(typeOf(cell.dtype)));
  }

  // Once a cell, as programs have them.
  void makeTensors(const Cell& cell, void* in, void* out) {
    const std::string& what = cell.collective;
    const std::size_t all = cell.count * static_cast<std::size_t>(cell.size);
    const bool manyIn = what == "reduce-scatter" || what == "all-to-all";
    const bool manyOut = what == "all-gather" || what == "all-to-all";
    inputs_.clear();
    outputs_.clear();
    if (in != nullptr) inputs_.push_back(tensor(cell, in, manyIn ? all : cell.count));
    if (out != nullptr) outputs_.push_back(tensor(cell, out, manyOut ? all : cell.count));
    lists_.emplace_back();  // of the root, one tensor a rank; empty elsewhere
    if (cell.rank != 0 || (what != "scatter" && what != "gather")) return;
    auto& parts = lists_[0].emplace_back();
    auto* data = static_cast<unsigned char*>(what == "scatter" ? in : out);
    for (int r = 0; r < cell.size; ++r) {
      parts.push_back(tensor(cell, data, cell.count));
      data += cell.count * cell.elementBytes;
    }
  }

  std::vector<at::Tensor> inputs_, outputs_;
  std::vector<std::vector<std::vector<at::Tensor>>> lists_;
  std::vector<std::int64_t> even_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

void serve(const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
  const py::gil_scoped_release released;
  Gloo library(group);
  byway_peers::serve(library);
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("serve", serve); }
