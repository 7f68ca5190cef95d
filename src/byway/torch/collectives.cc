// SPDX-License-Identifier: BSD-3-Clause
// Reductions and copies of whole tensors.
#include <regex>

#include "byway/torch/call.h"
#include "byway/torch/errors.h"
#include "byway/torch/groups.h"
#include "byway/torch/process_group.h"
#include "byway/torch/sparse.h"

namespace byway::pytorch {

using WorkPtr = ProcessGroupByway::WorkPtr;

void ProcessGroupByway::checkRoot(std::int64_t root) const {
  if (root < 0 || root >= size_) {
    invalid("root " + std::to_string(root) + " is not one of the group's " + std::to_string(size_) +
            " ranks");
  }
}

WorkPtr ProcessGroupByway::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  static constexpr auto kKind = BYWAY_CALL_KIND(ALLREDUCE, "all_reduce", "all_reduce", "allreduce");
  return call(kKind, tensors, tensors, options.timeout, [&](Call& call) {
    if (tensors.size() == 1 && tensors[0].defined() && tensors[0].is_sparse()) {
      return submitSparseSum(call, size_, tensors[0], reductionOf(options.reduceOp));
    }
    const at::Tensor& tensor = onlyOne(tensors, "the list of tensors");
    const DType dtype = dtypeOf(tensor, true);
    const Reduction reduction = reductionOf(options.reduceOp);
    const Region data = call.holder().inOut(tensor);
    call.submit([&](const CallOptions& o) {
      return call.communicator().allReduce(data, data, countOf(tensor), dtype, reduction, o);
    });
  });
}

WorkPtr ProcessGroupByway::allreduce_coalesced(Tensors& tensors,
                                               const c10d::AllreduceCoalescedOptions& options) {
  static constexpr auto kKind = BYWAY_CALL_KIND(ALLREDUCE_COALESCED, "all_reduce_coalesced",
                                                "all_reduce", "allreduce_coalesced");
  return call(kKind, tensors, tensors, options.timeout, [&](Call& call) {
    const Reduction reduction = reductionOf(options.reduceOp);
    struct OneType {
      DType dtype;
      std::uint64_t count;
      Region data;
    };
    std::vector<OneType> calls;
    for (const auto& indices : byType(tensors, "the list of tensors")) {
      std::vector<Buffer> parts;
      const Tensors mine = picked(tensors, indices);
      for (const at::Tensor& tensor : mine) append(parts, call.holder().inOut(tensor));
      calls.push_back({dtypeOf(mine[0], true), countOf(mine), Region(std::move(parts))});
    }
    for (const OneType& one : calls) {
      call.submit([&](const CallOptions& o) {
        return call.communicator().allReduce(one.data, one.data, one.count, one.dtype, reduction,
                                             o);
      });
    }
  });
}

WorkPtr ProcessGroupByway::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  static constexpr auto kKind = BYWAY_CALL_KIND(REDUCE, "reduce", "reduce", "reduce");
  return call(kKind, tensors, tensors, options.timeout, [&](Call& call) {
    const at::Tensor& tensor = onlyOne(tensors, "the list of tensors");
    checkRoot(options.rootRank);
    const DType dtype = dtypeOf(tensor, true);
    const Reduction reduction = reductionOf(options.reduceOp);
    const bool isRoot = options.rootRank == rank_;
    const Region input = isRoot ? call.holder().inOut(tensor) : call.holder().input(tensor);
    const Region output = isRoot ? input : Region();
    call.submit([&](const CallOptions& o) {
      return call.communicator().reduce(input, output, countOf(tensor), dtype,
                                        static_cast<int>(options.rootRank), reduction, o);
    });
  });
}

WorkPtr ProcessGroupByway::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  static constexpr auto kKind = BYWAY_CALL_KIND(BROADCAST, "broadcast", "broadcast", "broadcast");
  return call(kKind, tensors, tensors, options.timeout, [&](Call& call) {
    const at::Tensor& tensor = onlyOne(tensors, "the list of tensors");
    checkRoot(options.rootRank);
    const bool isRoot = options.rootRank == rank_;
    // The root's tensor is not written, so that it may be of any layout, an expanded one too.
    const Region input = isRoot ? call.holder().input(tensor) : Region();
    const Region output = isRoot ? input : call.holder().output(tensor);
    call.submit([&](const CallOptions& o) {
      return call.communicator().broadcast(input, output, countOf(tensor), dtypeOf(tensor, false),
                                           static_cast<int>(options.rootRank), o);
    });
  });
}

WorkPtr ProcessGroupByway::barrier(const c10d::BarrierOptions& options) {
  static constexpr auto kKind = BYWAY_CALL_KIND(BARRIER, "barrier", "barrier", "barrier");
  return call(kKind, {}, {}, options.timeout, [&](Call& call) {
    call.submit([&](const CallOptions& o) { return call.communicator().barrier(o); });
  });
}

// As Gloo words it, which programs look for: on the first rank who did not come, on the others that
// it was not they. The communicator's own report follows, which names the missing ranks by the
// words below (src/byway/executor/inquiry.cc).
static std::string monitoredText(const std::string& report, int rank, bool all) {
  if (rank != 0) {
    return "Rank " + std::to_string(rank) +
           " successfully reached monitoredBarrier, but received errors while waiting for "
           "send/recv "
           "from rank 0: " +
           report;
  }
  static const std::regex missing(
      "rank (\\d+) (?:does not answer|destroyed its|has not made|has ended)");
  std::vector<std::string> ranks;
  for (std::sregex_iterator at(report.begin(), report.end(), missing), end; at != end; ++at) {
    ranks.push_back((*at)[1]);
  }
  if (ranks.empty()) return report;
  if (!all) ranks.resize(1);
  std::string list;
  for (const std::string& each : ranks) list += (list.empty() ? "" : ", ") + each;
  return (all ? "Ranks " : "Rank ") + list + " failed to pass monitoredBarrier: " + report;
}

void ProcessGroupByway::monitoredBarrier(const c10d::BarrierOptions& options, bool waitAllRanks) {
  static constexpr auto kKind =
      BYWAY_CALL_KIND(BARRIER, "monitored_barrier", "monitored_barrier", "barrier");
  try {
    call(kKind, {}, {}, options.timeout, [&](Call& call) {
      if (options.timeout.count() == 0) {
        throw Error(ErrorCode::Timeout,
                    "Rank " + std::to_string(rank_) + " timed out in monitoredBarrier after 0 ms");
      }
      call.submit([&](const CallOptions& o) { return call.communicator().barrier(o); });
    })->wait();
  } catch (const c10::DistBackendError& error) {
    C10_THROW_ERROR(DistBackendError,
                    monitoredText(error.what_without_backtrace(), rank_, waitAllRanks));
  }
}

}  // namespace byway::pytorch
