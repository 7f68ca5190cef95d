// SPDX-License-Identifier: BSD-3-Clause
// The extension module `byway.torch._C`.
#include <c10/util/Logging.h>

#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "byway/base/log.h"
#include "byway/torch/flight_log.h"
#include "byway/torch/fused.h"
#include "byway/torch/hook.h"
#include "byway/torch/lazy_guard.h"
#include "byway/torch/process_group.h"
#include "byway/torch/torch_version.h"
#include "byway/torch/traced_work.h"

namespace py = pybind11;

namespace byway::pytorch {
namespace {

// To the log of torch's own C++ code (TORCH_CPP_LOG_LEVEL): Python's would need its lock on the
// library's threads.
void logToTorch(LogLevel level, const std::string& line) {
  switch (level) {
    case LogLevel::Debug:
      VLOG(1) << line;
      return;
    case LogLevel::Info:
      LOG(INFO) << line;
      return;
    case LogLevel::Warning:
      LOG(WARNING) << line;
      return;
    case LogLevel::Error:
      LOG(ERROR) << line;
      return;
  }
}

c10::intrusive_ptr<ProcessGroupByway> createGroup(
    const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
    const c10::intrusive_ptr<c10d::Backend::Options>& given, const std::string& name,
    std::chrono::milliseconds timeout, const std::string& group,
    const std::vector<std::uint64_t>& globalRanks, bool ofJob) {
  auto options = optionsFrom(given, name);
  options->timeout = timeout;
  options->group_name = group;
  options->global_ranks_in_group = globalRanks;
  // Links of the group's own number its ranks.
  if (ofJob && options->topology.empty() && options->pace.empty()) {
    options->topologyRanks.assign(globalRanks.begin(), globalRanks.end());
  }
  return c10::make_intrusive<ProcessGroupByway>(store, rank, size, std::move(options));
}

c10::intrusive_ptr<GroupOptions> copied(const GroupOptions& options) {
  return c10::make_intrusive<GroupOptions>(options);
}

void defineOptions(py::module_& module) {
  py::class_<GroupOptions, c10d::Backend::Options, c10::intrusive_ptr<GroupOptions>>(module,
                                                                                     "Options")
      .def(py::init([] { return c10::make_intrusive<GroupOptions>(); }))
      .def_readwrite("topology", &GroupOptions::topology)
      .def_readwrite("pace", &GroupOptions::pace)
      .def_readwrite("route", &GroupOptions::route)
      .def_readwrite("stage_quota", &GroupOptions::stageQuota)
      .def_readwrite("exchange_counts", &GroupOptions::exchangeCounts)
      .def("__copy__", &copied)
      .def("__deepcopy__",
           [](const GroupOptions& options, const py::dict&) { return copied(options); })
      .def_readwrite("group_desc", &GroupOptions::group_desc);
}

// What byway.torch.fused_* call. Groups are of ranks of this group.
void defineGroup(py::module_& module) {
  py::class_<FusedOfType>(module, "FusedOfType")
      .def(py::init([](at::ScalarType dtype, std::vector<std::vector<std::uint64_t>> counts,
                       Tensors inputs, Tensors outputs) {
             return FusedOfType{dtype, std::move(counts), std::move(inputs), std::move(outputs)};
           }),
           py::arg("dtype"), py::arg("counts"), py::arg("inputs"), py::arg("outputs"));
  py::class_<ProcessGroupByway, c10d::Backend, c10::intrusive_ptr<ProcessGroupByway>>(
      module, "ProcessGroupByway")
      .def_property_readonly("options", &ProcessGroupByway::groupOptions)
      .def(
          "fused",
          [](ProcessGroupByway& self, const std::string& collective,
             std::vector<std::vector<int>> groups, std::vector<int> roots,
             std::vector<FusedOfType> types, const c10d::ReduceOp& op,
             std::chrono::milliseconds timeout) -> c10::intrusive_ptr<c10d::Work> {
            FusedCall call{collective, std::move(groups), std::move(roots), std::move(types), op};
            return self.fused(call, timeout);
          },
          py::arg("collective"), py::arg("groups"), py::arg("roots"), py::arg("types"),
          py::arg("op"), py::arg("timeout"))
      .def("exchange_counts", &ProcessGroupByway::exchangeCounts, py::arg("row"),
           py::arg("timeout"))
      .def("refuse", &ProcessGroupByway::refuse, py::arg("why"))
      .def("recorded_calls", &ProcessGroupByway::recordedCalls);
}

}  // namespace
}  // namespace byway::pytorch

PYBIND11_MODULE(_C, module) {
  using namespace byway::pytorch;
  byway::setLogHook(logToTorch);
  module.attr("torch_version") = TORCH_VERSION;
  module.attr("byway_version") = BYWAY_VERSION;
  defineOptions(module);
  defineTracedOperators();
  defineGroup(module);
  module.def("create_group", &createGroup, py::arg("store"), py::arg("rank"), py::arg("size"),
             py::arg("options"), py::arg("name"), py::arg("timeout"), py::arg("group"),
             py::arg("global_ranks"), py::arg("of_job") = false);
  module.def(
      "hold_traced",
      [](std::string kind, Tensors inputs, Tensors outputs, c10::intrusive_ptr<c10d::Work> work) {
        TracedCall call;
        call.kind = std::move(kind);
        call.ins = std::move(inputs);
        call.outs = std::move(outputs);
        return holdTraced(std::move(call), {std::move(work)});
      },
      py::arg("kind"), py::arg("inputs"), py::arg("outputs"), py::arg("work"));
  guardLazyTensors(true);
  module.def("guard_lazy_tensors", &guardLazyTensors, py::arg("on"));
  module.def("lazy_link", [] { return reinterpret_cast<std::uintptr_t>(&lazyLink()); });
  module.def("flight_record", [] { return py::bytes(flightRecord()); });
  module.def("shutdown_all", &shutdownAll, py::arg("seconds"));
}
