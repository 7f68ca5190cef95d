// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/lazy_guard.h"

#include <ATen/native/CPUFallback.h>
#include <c10/util/Exception.h>

#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/library.h>

#include "byway/torch/hook.h"

namespace byway::pytorch {
namespace {

c10::intrusive_ptr<c10d::ProcessGroup> groupOf(const c10::OperatorHandle& op,
                                               const torch::jit::Stack& stack) {
  const auto& arguments = op.schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = torch::jit::peek(stack, i, arguments.size());
    if (arguments[i].name() == "process_group") return value.toCustomClass<c10d::ProcessGroup>();
    if (arguments[i].name() == "group_name" && value.isString()) {
      return c10d::resolve_process_group(value.toStringRef());
    }
  }
  return nullptr;
}

void refuseLazy(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto group = groupOf(op, *stack);
  if (group && group->getBackendType() == c10d::ProcessGroup::CUSTOM &&
      lazyLink().isByway(*group->getBackend(c10::DeviceType::CPU))) {
    C10_THROW_ERROR(NotImplementedError,
                    "byway: " + op.schema().name() +
                        " was given a lazy tensor, but lazy mode is off; call byway.lazy.init() "
                        "before, or move the tensor to the CPU");
  }
  at::native::cpu_fallback(op, stack);  // as torch does
}

const std::vector<const char*> kOperators = {"allreduce_",
                                             "allreduce_coalesced_",
                                             "broadcast_",
                                             "reduce_",
                                             "allgather_",
                                             "_allgather_base_",
                                             "allgather_coalesced_",
                                             "allgather_into_tensor_coalesced_",
                                             "gather_",
                                             "scatter_",
                                             "reduce_scatter_",
                                             "_reduce_scatter_base_",
                                             "reduce_scatter_tensor_coalesced_",
                                             "alltoall_",
                                             "alltoall_base_",
                                             "send",
                                             "recv_",
                                             "recv_any_source_"};
const std::vector<const char*> kFunctional = {"all_reduce",
                                              "all_reduce_coalesced",
                                              "all_gather_into_tensor",
                                              "all_gather_into_tensor_coalesced",
                                              "reduce_scatter_tensor",
                                              "reduce_scatter_tensor_coalesced",
                                              "all_to_all_single",
                                              "broadcast"};

std::unique_ptr<torch::Library> registered(const char* space, const std::vector<const char*>& ops) {
  auto library = std::make_unique<torch::Library>(torch::Library::IMPL, space,
                                                  c10::DispatchKey::Lazy, __FILE__, __LINE__);
  for (const char* op : ops) {
    library->impl(op, torch::CppFunction::makeFromBoxedFunction<&refuseLazy>());
  }
  return library;
}

}  // namespace

void guardLazyTensors(bool on) {
  // Never destroyed: the dispatcher may be gone at exit.
  static auto* const libraries = new std::vector<std::unique_ptr<torch::Library>>();
  libraries->clear();
  if (!on) return;
  libraries->push_back(registered("c10d", kOperators));
  libraries->push_back(registered("_c10d_functional", kFunctional));
}

}  // namespace byway::pytorch
