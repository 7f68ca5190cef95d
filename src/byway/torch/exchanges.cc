// SPDX-License-Identifier: BSD-3-Clause
// gather, scatter and all_to_all, whose sizes each rank may know a part of only.
#include "byway/torch/call.h"
#include "byway/torch/errors.h"
#include "byway/torch/groups.h"
#include "byway/torch/process_group.h"

namespace byway::pytorch {
namespace {

using Counts = std::vector<std::uint64_t>;

// Elements for each rank along dimension 0. No splits: equal parts.
Counts splitCounts(const at::Tensor& tensor, const std::vector<std::int64_t>& splits, int size,
                   const std::string& what) {
  const auto ranks = static_cast<std::size_t>(size);
  const std::int64_t rows = tensor.dim() == 0 ? tensor.numel() : tensor.size(0);
  if (splits.empty()) {
    if (rows % size != 0) {
      invalid(what + " has " + std::to_string(rows) + " rows, which do not divide among " +
              std::to_string(size) + " ranks; give split sizes");
    }
    return Counts(ranks, countOf(tensor) / ranks);
  }
  checkLength(splits.size(), ranks, "the list of split sizes of " + what);
  Counts counts;
  std::int64_t sum = 0;
  for (const std::int64_t split : splits) {
    if (split < 0) invalid("a split size of " + what + " is " + std::to_string(split));
    sum += split;
    counts.push_back(rows == 0 ? 0
                               : static_cast<std::uint64_t>(split) * countOf(tensor) /
                                     static_cast<std::uint64_t>(rows));
  }
  if (sum != rows) {
    invalid("the split sizes of " + what + " sum to " + std::to_string(sum) + ", but it has " +
            std::to_string(rows) + " rows");
  }
  return counts;
}

// What this rank knows of a gather's or scatter's counts; all of them where ranks exchange them.
RankCounts known(Call& call, bool exchange, const Counts& counts, bool isRoot, int root) {
  if (!exchange) return isRoot ? RankCounts::atRoot(counts) : RankCounts::own(counts[0]);
  Communicator& communicator = call.communicator();
  Counts all(static_cast<std::size_t>(communicator.size()));
  if (isRoot) all = counts;
  const Region data(all.data(), all.size() * sizeof(all[0]));
  communicator.broadcast(isRoot ? data : Region(), data, all.size(), DType::UInt64, root).wait();
  return all;
}

// The counts of all pairs, by source.
Counts allPairs(Call& call, Counts mine) {
  Communicator& communicator = call.communicator();
  Counts all(mine.size() * mine.size());
  communicator
      .allGather({mine.data(), mine.size() * sizeof(mine[0])},
                 {all.data(), all.size() * sizeof(all[0])}, mine.size(), DType::UInt64)
      .wait();
  return all;
}

Work allToAll(Call& call, bool exchange, const Region& from, const Region& to, const Counts& send,
              const Counts& recv, DType dtype, const CallOptions& options) {
  Communicator& communicator = call.communicator();
  return exchange ? communicator.allToAll(from, to, allPairs(call, send), dtype, options)
                  : communicator.allToAll(from, to, send, recv, dtype, options);
}

}  // namespace

using WorkPtr = ProcessGroupByway::WorkPtr;

WorkPtr ProcessGroupByway::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                  const c10d::GatherOptions& options) {
  static constexpr auto kKind = BYWAY_CALL_KIND(GATHER, "gather", "gather", "gather");
  const Tensors results = outputs.empty() ? Tensors() : outputs[0];
  return call(kKind, inputs, results, options.timeout, [&](Call& call) {
    const at::Tensor& input = onlyOne(inputs, "the list of inputs");
    checkRoot(options.rootRank);
    const int root = static_cast<int>(options.rootRank);
    const bool isRoot = root == rank_;
    Region to;
    Counts counts{countOf(input)};
    if (isRoot) {
      const Tensors& list = onlyOne(outputs, "the list of output lists");
      checkLength(list.size(), static_cast<std::size_t>(size_), "the output list");
      checkTensors(list, "output");
      checkSameType(input, list[0]);
      counts = countsOf(list);
      checkCount(countOf(input), counts[static_cast<std::size_t>(rank_)],
                 "the input of rank " + std::to_string(rank_));
      to = call.holder().output(list);
    } else if (!results.empty()) {
      invalid("rank " + std::to_string(rank_) + " is not the root (" +
              std::to_string(options.rootRank) + ") and must give no outputs");
    }
    const Region from = call.holder().input(input);
    call.submit([&](const CallOptions& o) {
      return call.communicator().gather(from, to,
                                        known(call, options_->exchangeCounts, counts, isRoot, root),
                                        dtypeOf(input, false), root, o);
    });
  });
}

WorkPtr ProcessGroupByway::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                   const c10d::ScatterOptions& options) {
  static constexpr auto kKind = BYWAY_CALL_KIND(SCATTER, "scatter", "scatter", "scatter");
  const Tensors sources = inputs.empty() ? Tensors() : inputs[0];
  return call(kKind, sources, outputs, options.timeout, [&](Call& call) {
    const at::Tensor& output = onlyOne(outputs, "the list of outputs");
    checkRoot(options.rootRank);
    const int root = static_cast<int>(options.rootRank);
    const bool isRoot = root == rank_;
    Region from;
    Counts counts{countOf(output)};
    if (isRoot) {
      const Tensors& list = onlyOne(inputs, "the list of input lists");
      checkLength(list.size(), static_cast<std::size_t>(size_), "the input list");
      checkTensors(list, "input");
      checkSameType(list[0], output);
      counts = countsOf(list);
      checkCount(countOf(output), counts[static_cast<std::size_t>(rank_)],
                 "the output of rank " + std::to_string(rank_));
      from = call.holder().input(list);
    } else if (!sources.empty()) {
      invalid("rank " + std::to_string(rank_) + " is not the root (" +
              std::to_string(options.rootRank) + ") and must give no inputs");
    }
    const Region to = call.holder().output(output);
    call.submit([&](const CallOptions& o) {
      return call.communicator().scatter(
          from, to, known(call, options_->exchangeCounts, counts, isRoot, root),
          dtypeOf(output, false), root, o);
    });
  });
}

WorkPtr ProcessGroupByway::alltoall_base(at::Tensor& output, at::Tensor& input,
                                         std::vector<std::int64_t>& outputSplits,
                                         std::vector<std::int64_t>& inputSplits,
                                         const c10d::AllToAllOptions& options) {
  static constexpr auto kKind =
      BYWAY_CALL_KIND(ALLTOALL_BASE, "all_to_all_single", "all_to_all", "all_to_all");
  return call(kKind, {input}, {output}, options.timeout, [&](Call& call) {
    checkTensor(input, "the input");
    checkTensor(output, "the output");
    checkSameType(input, output);
    const DType dtype = dtypeOf(input, false);
    const Counts send = splitCounts(input, inputSplits, size_, "the input");
    const Counts recv = splitCounts(output, outputSplits, size_, "the output");
    const Region from = call.holder().input(input);
    const Region to = call.holder().output(output);
    const bool equal = inputSplits.empty() && outputSplits.empty();
    if (equal) checkCount(countOf(output), countOf(input), "the output");
    call.submit([&](const CallOptions& o) {
      return equal ? call.communicator().allToAll(from, to, send[0], dtype, o)
                   : allToAll(call, options_->exchangeCounts, from, to, send, recv, dtype, o);
    });
  });
}

WorkPtr ProcessGroupByway::alltoall(Tensors& outputs, Tensors& inputs,
                                    const c10d::AllToAllOptions& options) {
  static constexpr auto kKind = BYWAY_CALL_KIND(ALLTOALL, "all_to_all", "all_to_all", "all_to_all");
  return call(kKind, inputs, outputs, options.timeout, [&](Call& call) {
    checkLength(inputs.size(), static_cast<std::size_t>(size_), "the input list");
    checkLength(outputs.size(), static_cast<std::size_t>(size_), "the output list");
    checkTensors(inputs, "input");
    checkTensors(outputs, "output");
    checkSameType(inputs[0], outputs[0]);
    const Region from = call.holder().input(inputs);
    const Region to = call.holder().output(outputs);
    call.submit([&](const CallOptions& o) {
      return allToAll(call, options_->exchangeCounts, from, to, countsOf(inputs), countsOf(outputs),
                      dtypeOf(inputs[0], false), o);
    });
  });
}

}  // namespace byway::pytorch
