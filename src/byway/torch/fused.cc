// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/fused.h"

#include <algorithm>

#include "byway/torch/call.h"
#include "byway/torch/errors.h"
#include "byway/torch/groups.h"
#include "byway/torch/process_group.h"
#include "byway/torch/torch_version.h"

namespace byway::pytorch {
namespace {

struct Kind {
  Collective collective;
  CallKind call;
};

const Kind& kindOf(const std::string& name) {
  static const std::vector<Kind> kinds{
      {Collective::AllReduce, BYWAY_CALL_KIND(ALLREDUCE_COALESCED, "fused_all_reduce",
                                              "fused_all_reduce", "allreduce_coalesced")},
      {Collective::AllGather, BYWAY_CALL_KIND(ALLGATHER_COALESCED, "fused_all_gather",
                                              "fused_all_gather", "allgather_coalesced")},
      {Collective::ReduceScatter,
       BYWAY_CALL_KIND_OF(reduceScatterCoalescedType(), "fused_reduce_scatter",
                          "fused_reduce_scatter", "reduce_scatter_tensor_coalesced")},
      {Collective::AllToAll,
       BYWAY_CALL_KIND(ALLTOALL, "fused_all_to_all", "fused_all_to_all", "all_to_all")},
      {Collective::Broadcast,
       BYWAY_CALL_KIND(BROADCAST, "fused_broadcast", "fused_broadcast", "broadcast")},
      {Collective::Reduce, BYWAY_CALL_KIND(REDUCE, "fused_reduce", "fused_reduce", "reduce")}};
  for (const Kind& kind : kinds) {
    if (kind.call.name == "fused_" + name) return kind;
  }
  throwToTorch({ErrorCode::InvalidArgument, "\"" + name + "\" is no fused collective"}, "byway");
}

// This rank's place in the call's groups.
struct Place {
  std::size_t size = 0;  // of the group; 0: helps
  bool isRoot = false;
};

Place placeOf(const FusedCall& fused, int rank) {
  for (std::size_t g = 0; g < fused.groups.size(); ++g) {
    const auto& ranks = fused.groups[g];
    const auto found = std::find(ranks.begin(), ranks.end(), rank);
    if (found == ranks.end()) continue;
    const auto root = fused.roots.empty() ? 0 : static_cast<std::size_t>(fused.roots[g]);
    return {ranks.size(), root == static_cast<std::size_t>(found - ranks.begin())};
  }
  return {};
}

std::vector<CallGroup> groupsOf(const FusedCall& fused, const FusedOfType& part) {
  checkLength(part.counts.size(), fused.groups.size(), "the list of counts");
  if (!fused.roots.empty()) {
    checkLength(fused.roots.size(), fused.groups.size(), "the list of roots");
  }
  std::vector<CallGroup> groups;
  for (std::size_t g = 0; g < fused.groups.size(); ++g) {
    CallGroup group{fused.groups[g], fused.roots.empty() ? 0 : fused.roots[g], 0, {}};
    if (part.counts[g].size() == 1)
      group.count = part.counts[g][0];
    else
      group.counts = part.counts[g];
    if (part.counts[g].empty()) invalid("group " + std::to_string(g) + " has no count");
    groups.push_back(std::move(group));
  }
  return groups;
}

// Block after block, and within a block tensor after tensor: each tensor holds `blocks` equal ones.
Region byBlock(const Region& tensors, std::size_t blocks, const std::string& what) {
  if (tensors.parts().size() <= 1) return tensors;
  std::vector<Buffer> parts;
  for (std::size_t b = 0; b < blocks; ++b) {
    for (const Buffer& tensor : tensors.parts()) {
      if (tensor.bytes % blocks != 0) {
        invalid(what + " of a list of several does not divide among the group's " +
                std::to_string(blocks) + " ranks");
      }
      Buffer part = tensor;
      part.bytes = tensor.bytes / blocks;
      if (part.bytes == 0) continue;
      part.address = static_cast<std::byte*>(tensor.address) + b * part.bytes;
      parts.push_back(part);
    }
  }
  return parts;
}

bool sameTensors(const Tensors& a, const Tensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.is_same(y); });
}

Region inOut(Holder& holder, const Tensors& tensors) {
  std::vector<Buffer> parts;
  for (const at::Tensor& tensor : tensors) append(parts, holder.inOut(tensor));
  return parts;
}

void checkAll(const Tensors& tensors, at::ScalarType type, const std::string& what) {
  for (const at::Tensor& tensor : tensors) {
    checkTensor(tensor, what);
    if (tensor.scalar_type() != type) {
      invalid(what + " has type " + c10::toString(tensor.scalar_type()) + "; expected " +
              c10::toString(type));
    }
  }
}

FusedArgs argsOf(Holder& holder, Collective collective, const FusedOfType& part, Place place) {
  if (place.size == 0) {
    if (part.inputs.empty() && part.outputs.empty()) return {};
    invalid("a rank that is in no group only helps: it gives empty lists");
  }
  checkAll(part.inputs, part.type, "an input");
  checkAll(part.outputs, part.type, "an output");
  const bool inPlace = !part.inputs.empty() && sameTensors(part.inputs, part.outputs);
  switch (collective) {
    case Collective::AllReduce:
    case Collective::Reduce:
      if (inPlace) {
        const Region data = inOut(holder, part.inputs);
        return {data, data};
      }
      return {holder.input(part.inputs), holder.output(part.outputs)};
    case Collective::Broadcast: {
      if (!place.isRoot) return {{}, holder.output(part.outputs)};
      const Region input = holder.input(part.inputs);
      return {input, inPlace ? input : holder.output(part.outputs)};
    }
    case Collective::AllGather:
      return {holder.input(part.inputs),
              byBlock(holder.output(part.outputs), place.size, "an output")};
    case Collective::ReduceScatter:
      return {byBlock(holder.input(part.inputs), place.size, "an input"),
              holder.output(part.outputs)};
    case Collective::AllToAll:
      return {byBlock(holder.input(part.inputs), place.size, "an input"),
              byBlock(holder.output(part.outputs), place.size, "an output")};
    case Collective::Scatter:
    case Collective::Gather:
      break;
  }
  invalid("no fused collective");
}

struct OneType {
  DType dtype;
  std::vector<CallGroup> groups;
  FusedArgs mine;
};

Tensors allOf(const std::vector<FusedOfType>& types, Tensors FusedOfType::*list) {
  Tensors all;
  for (const FusedOfType& part : types) {
    all.insert(all.end(), (part.*list).begin(), (part.*list).end());
  }
  return all;
}

}  // namespace

ProcessGroupByway::WorkPtr ProcessGroupByway::fused(FusedCall& fused,
                                                    std::chrono::milliseconds timeout) {
  const Kind& kind = kindOf(fused.collective);
  const auto inputs = allOf(fused.types, &FusedOfType::inputs);
  const auto outputs = allOf(fused.types, &FusedOfType::outputs);
  return call(kind.call, inputs, outputs, timeout, [&](Call& call) {
    const bool sums = reduces(kind.collective);
    const Reduction reduction = sums ? reductionOf(fused.op) : Reduction();
    const Place place = placeOf(fused, rank_);
    std::vector<OneType> calls;
    for (const FusedOfType& part : fused.types) {
      calls.push_back({dtypeOf(part.type, sums), groupsOf(fused, part),
                       argsOf(call.holder(), kind.collective, part, place)});
    }
    for (const OneType& one : calls) {
      call.submit([&](const CallOptions& o) {
        return call.communicator().fused(kind.collective, one.groups, one.mine, one.dtype,
                                         reduction, o);
      });
    }
  });
}

std::vector<std::uint64_t> ProcessGroupByway::exchangeCounts(const std::vector<std::uint64_t>& row,
                                                             std::chrono::milliseconds timeout) {
  static constexpr auto kKind =
      BYWAY_CALL_KIND(ALLGATHER, "exchange_counts", "exchange_counts", "all_gather");
  std::vector<std::uint64_t> rows;
  call(kKind, {}, {}, timeout, [&](Call& call) {
    call.submit([&](const CallOptions& o) {
      rows = call.communicator().exchangeCounts(row, o);
      return Work();
    });
  });
  return rows;
}

void ProcessGroupByway::refuse(const std::string& why) {
  static constexpr auto kKind = BYWAY_CALL_KIND(UNKNOWN, "fused", "fused", "fused");
  call(kKind, {}, {}, c10d::kUnsetTimeout, [&](Call&) { invalid(why); });
}

}  // namespace byway::pytorch
