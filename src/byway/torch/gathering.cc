// SPDX-License-Identifier: BSD-3-Clause
// all_gather and reduce_scatter: by lists, by tensors, and several at once.
#include "byway/torch/call.h"
#include "byway/torch/errors.h"
#include "byway/torch/groups.h"
#include "byway/torch/process_group.h"
#include "byway/torch/torch_version.h"

namespace byway::pytorch {
namespace {

constexpr auto kAllGatherTensor =
    BYWAY_CALL_KIND(_ALLGATHER_BASE, "all_gather_into_tensor", "all_gather", "_allgather_base");
constexpr auto kReduceScatterTensor = BYWAY_CALL_KIND(_REDUCE_SCATTER_BASE, "reduce_scatter_tensor",
                                                      "reduce_scatter", "_reduce_scatter_base");

Tensors flattened(const std::vector<Tensors>& lists) {
  Tensors all;
  for (const Tensors& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// Pairs of a rank's tensor and the one that holds all ranks', for the coalesced forms.
struct Pairs {
  DType dtype;
  std::vector<Region> own, whole;
};

}  // namespace

using WorkPtr = ProcessGroupByway::WorkPtr;

WorkPtr ProcessGroupByway::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                     const c10d::AllgatherOptions& options) {
  static constexpr auto kKind =
      BYWAY_CALL_KIND(ALLGATHER, "all_gather", "all_gather", "all_gather");
  return call(kKind, inputs, flattened(outputs), options.timeout, [&](Call& call) {
    const at::Tensor& input = onlyOne(inputs, "the list of inputs");
    const Tensors& list = onlyOne(outputs, "the list of output lists");
    checkLength(list.size(), static_cast<std::size_t>(size_), "the output list");
    checkTensors(list, "output");
    checkSameType(input, list[0]);
    const auto counts = countsOf(list);
    checkCount(countOf(input), counts[static_cast<std::size_t>(rank_)],
               "the input of rank " + std::to_string(rank_));
    const DType dtype = dtypeOf(input, false);
    const Region from = call.holder().input(input);
    const Region to = call.holder().output(list);
    call.submit([&](const CallOptions& o) {
      return allEqual(counts) ? call.communicator().allGather(from, to, counts[0], dtype, o)
                              : call.communicator().allGather(from, to, counts, dtype, o);
    });
  });
}

WorkPtr ProcessGroupByway::_allgather_base(at::Tensor& output, at::Tensor& input,
                                           const c10d::AllgatherOptions& options) {
  return call(kAllGatherTensor, {input}, {output}, options.timeout, [&](Call& call) {
    checkTensor(input, "the input");
    checkTensor(output, "the output");
    checkSameType(input, output);
    checkCount(countOf(output), countOf(input) * static_cast<std::uint64_t>(size_), "the output");
    const Region from = call.holder().input(input);
    const Region to = call.holder().output(output);
    call.submit([&](const CallOptions& o) {
      return call.communicator().allGather(from, to, countOf(input), dtypeOf(input, false), o);
    });
  });
}

// outputs[rank][i] gets inputs[i] of that rank.
WorkPtr ProcessGroupByway::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                               const c10d::AllgatherOptions& options) {
  static constexpr auto kKind = BYWAY_CALL_KIND(ALLGATHER_COALESCED, "all_gather_coalesced",
                                                "all_gather", "allgather_coalesced");
  return call(kKind, inputs, flattened(outputs), options.timeout, [&](Call& call) {
    checkLength(outputs.size(), static_cast<std::size_t>(size_), "the list of output lists");
    for (const Tensors& list : outputs) {
      checkLength(list.size(), inputs.size(), "an output list");
      for (std::size_t i = 0; i < list.size(); ++i) {
        checkTensor(list[i], "an output");
        checkSameType(inputs[i], list[i]);
        checkCount(countOf(list[i]), countOf(inputs[i]), "output " + std::to_string(i));
      }
    }
    struct OneType {
      DType dtype;
      std::uint64_t count;
      Region from, to;
    };
    std::vector<OneType> calls;
    for (const auto& indices : byType(inputs, "the list of inputs")) {
      const Tensors mine = picked(inputs, indices);
      std::vector<Buffer> parts;
      for (const Tensors& list : outputs) {
        append(parts, call.holder().output(picked(list, indices)));
      }
      calls.push_back({dtypeOf(mine[0], false), countOf(mine), call.holder().input(mine),
                       Region(std::move(parts))});
    }
    for (const OneType& one : calls) {
      call.submit([&](const CallOptions& o) {
        return call.communicator().allGather(one.from, one.to, one.count, one.dtype, o);
      });
    }
  });
}

WorkPtr ProcessGroupByway::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                           const c10d::AllgatherOptions& options) {
  static constexpr auto kKind = BYWAY_CALL_KIND(COALESCED, "all_gather_into_tensor_coalesced",
                                                "all_gather", "all_gather_into_tensor_coalesced");
  return call(kKind, inputs, outputs, options.timeout, [&](Call& call) {
    checkLength(outputs.size(), inputs.size(), "the list of outputs");
    std::vector<Pairs> calls;
    for (const auto& indices : byType(inputs, "the list of inputs")) {
      Pairs pairs{dtypeOf(inputs[indices[0]], false), {}, {}};
      for (const std::size_t i : indices) {
        checkTensor(outputs[i], "output " + std::to_string(i));
        checkSameType(inputs[i], outputs[i]);
        checkCount(countOf(outputs[i]), countOf(inputs[i]) * static_cast<std::uint64_t>(size_),
                   "output " + std::to_string(i));
        pairs.own.push_back(call.holder().input(inputs[i]));
        pairs.whole.push_back(call.holder().output(outputs[i]));
      }
      calls.push_back(std::move(pairs));
    }
    for (const Pairs& pairs : calls) {
      call.submit([&](const CallOptions& o) {
        return call.communicator().allGatherCoalesced(pairs.own, pairs.whole, pairs.dtype, o);
      });
    }
  });
}

WorkPtr ProcessGroupByway::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                          const c10d::ReduceScatterOptions& options) {
  static constexpr auto kKind =
      BYWAY_CALL_KIND(REDUCE_SCATTER, "reduce_scatter", "reduce_scatter", "reduce_scatter");
  return call(kKind, flattened(inputs), outputs, options.timeout, [&](Call& call) {
    const at::Tensor& output = onlyOne(outputs, "the list of outputs");
    const Tensors& list = onlyOne(inputs, "the list of input lists");
    checkLength(list.size(), static_cast<std::size_t>(size_), "the input list");
    checkTensors(list, "input");
    checkSameType(list[0], output);
    const auto counts = countsOf(list);
    checkCount(countOf(output), counts[static_cast<std::size_t>(rank_)],
               "the output of rank " + std::to_string(rank_));
    const DType dtype = dtypeOf(output, true);
    const Reduction reduction = reductionOf(options.reduceOp);
    const Region from = call.holder().input(list);
    const Region to = call.holder().output(output);
    call.submit([&](const CallOptions& o) {
      return allEqual(counts)
                 ? call.communicator().reduceScatter(from, to, counts[0], dtype, reduction, o)
                 : call.communicator().reduceScatter(from, to, counts, dtype, reduction, o);
    });
  });
}

WorkPtr ProcessGroupByway::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                const c10d::ReduceScatterOptions& options) {
  return call(kReduceScatterTensor, {input}, {output}, options.timeout, [&](Call& call) {
    checkTensor(input, "the input");
    checkTensor(output, "the output");
    checkSameType(input, output);
    checkCount(countOf(input), countOf(output) * static_cast<std::uint64_t>(size_), "the input");
    const DType dtype = dtypeOf(output, true);
    const Reduction reduction = reductionOf(options.reduceOp);
    const Region from = call.holder().input(input);
    const Region to = call.holder().output(output);
    call.submit([&](const CallOptions& o) {
      return call.communicator().reduceScatter(from, to, countOf(output), dtype, reduction, o);
    });
  });
}

WorkPtr ProcessGroupByway::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  static constexpr auto kKind =
      BYWAY_CALL_KIND_OF(reduceScatterCoalescedType(), "reduce_scatter_tensor_coalesced",
                         "reduce_scatter", "reduce_scatter_tensor_coalesced");
  return call(kKind, inputs, outputs, options.timeout, [&](Call& call) {
    checkLength(inputs.size(), outputs.size(), "the list of inputs");
    const Reduction reduction = reductionOf(options.reduceOp);
    std::vector<Pairs> calls;
    for (const auto& indices : byType(outputs, "the list of outputs")) {
      Pairs pairs{dtypeOf(outputs[indices[0]], true), {}, {}};
      for (const std::size_t i : indices) {
        checkTensor(inputs[i], "input " + std::to_string(i));
        checkSameType(inputs[i], outputs[i]);
        checkCount(countOf(inputs[i]), countOf(outputs[i]) * static_cast<std::uint64_t>(size_),
                   "input " + std::to_string(i));
        pairs.whole.push_back(call.holder().input(inputs[i]));
        pairs.own.push_back(call.holder().output(outputs[i]));
      }
      calls.push_back(std::move(pairs));
    }
    for (const Pairs& pairs : calls) {
      call.submit([&](const CallOptions& o) {
        return call.communicator().reduceScatterCoalesced(pairs.whole, pairs.own, pairs.dtype,
                                                          reduction, o);
      });
    }
  });
}

}  // namespace byway::pytorch
