// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/lazy/roles.h"

#include <algorithm>

namespace byway::pytorch::lazy {

const std::vector<OpRoles>& allRoles() {
  using enum c10d::OpType;
  using enum Role;
  // Never destroyed: lazy tensors may outlive this file's statics.
  static const auto* const all = new std::vector<OpRoles>{
      {"allreduce_", ALLREDUCE, {InOut}},
      {"allreduce_coalesced_", ALLREDUCE_COALESCED, {InOut}},
      {"broadcast_", BROADCAST, {InOut}},
      {"reduce_", REDUCE, {InOut}},
      {"allgather_", ALLGATHER, {Out, In}},
      {"_allgather_base_", _ALLGATHER_BASE, {Out, In}},
      {"allgather_coalesced_", ALLGATHER_COALESCED, {Out, In}},
      {"allgather_into_tensor_coalesced_", ALLGATHER_COALESCED, {Out, In}},
      {"gather_", GATHER, {Out, In}},
      {"scatter_", SCATTER, {Out, In}},
      {"reduce_scatter_", REDUCE_SCATTER, {Out, In}},
      {"_reduce_scatter_base_", _REDUCE_SCATTER_BASE, {Out, In}},
      {"reduce_scatter_tensor_coalesced_", REDUCE_SCATTER_TENSOR_COALESCED, {Out, In}},
      {"alltoall_", ALLTOALL, {Out, In}},
      {"alltoall_base_", ALLTOALL_BASE, {Out, In}},
      {"send", SEND, {In}, true},
      {"recv_", RECV, {Out}, true},
      {"recv_any_source_", RECVANYSOURCE, {Out}, true},
  };
  return *all;
}

const OpRoles* rolesOf(std::string_view op) {
  const auto& all = allRoles();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const OpRoles& one) { return one.op == op; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace byway::pytorch::lazy
