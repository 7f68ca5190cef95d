// SPDX-License-Identifier: BSD-3-Clause
// The calls on the whole communicator: each is the one-group case of fused().
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "byway/comm/call.h"
#include "byway/comm/communicator.h"

namespace byway {
namespace {

Work callAll(CommunicatorState& state, Collective collective, CallGroup group, DType dtype,
             const Reduction& reduction, const Region& input, const Region& output,
             const CallOptions& options) {
  return submitCall(state, {collective, {std::move(group)}, dtype, reduction, false, 0},
                    {input, output}, options);
}

Work callWhole(CommunicatorState& state, Collective collective, std::uint64_t count, int root,
               DType dtype, const Reduction& reduction, const Region& input, const Region& output,
               const CallOptions& options) {
  return submitWhole(state, {collective, dtype, reduction.op, false, root, count}, reduction, input,
                     output, options);
}

CallGroup counted(const CommunicatorState& state, std::vector<std::uint64_t> counts) {
  CallGroup group = everybody(state);
  group.counts = std::move(counts);
  if (group.counts.empty()) group.counts.assign(1, 0);  // refused with its number
  return group;
}

void checkListed(const CommunicatorState& state, const char* what,
                 const std::vector<std::uint64_t>& counts, std::size_t expected) {
  if (counts.size() == expected) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{} counts for {}; a communicator of {} ranks has {}", counts.size(),
                          what, state.size, expected));
}

// One rank's row and column of the matrix of counts.
Call ownAllToAll(const CommunicatorState& state, const std::vector<std::uint64_t>& sends,
                 const std::vector<std::uint64_t>& receives, DType dtype) {
  const auto n = static_cast<std::size_t>(state.size);
  const auto self = static_cast<std::size_t>(state.rank);
  checkListed(state, "what is sent to each rank", sends, n);
  checkListed(state, "what is received from each rank", receives, n);
  if (sends[self] != receives[self]) {
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("a rank sends {} elements to itself and receives {} from itself",
                            sends[self], receives[self]));
  }
  CallGroup group = everybody(state);
  group.counts.assign(n * n, 0);
  for (std::size_t r = 0; r < n; ++r) {
    group.counts[self * n + r] = sends[r];
    group.counts[r * n + self] = receives[r];
  }
  return {Collective::AllToAll, {std::move(group)}, dtype, {}, false, 0, true};
}

Call rootedCall(const CommunicatorState& state, Collective collective, const RankCounts& counts,
                DType dtype, int root) {
  CallGroup group = everybody(state);
  group.root = root;
  const bool own = counts.known() == RankCounts::Known::Own;
  if (own && state.rank == root) {
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("the root of a {} must give the counts of all ranks", toString(collective)));
  }
  checkListed(state, own ? "the rank's own block" : "the blocks of all ranks", counts.counts(),
              own ? 1 : static_cast<std::size_t>(state.size));
  group.counts = counts.counts();
  if (counts.known() != RankCounts::Known::Everywhere && state.rank != root) {
    const auto self = static_cast<std::size_t>(state.rank);
    const std::uint64_t mine = group.counts[own ? 0 : self];
    group.counts.assign(static_cast<std::size_t>(state.size), 0);
    group.counts[self] = mine;
  }
  const bool ownCounts = counts.known() != RankCounts::Known::Everywhere;
  return {collective, {std::move(group)}, dtype, {}, false, 0, ownCounts};
}

Work callRooted(CommunicatorState& state, Collective collective, const RankCounts& counts,
                DType dtype, int root, const FusedArgs& mine, const CallOptions& options) {
  std::optional<Call> call;
  checkOrRefuse(state, options, [&] { call = rootedCall(state, collective, counts, dtype, root); });
  return submitCall(state, *call, mine, options);
}

// Elements i of all blocks of the larger side, one rank's after another.
Region interleaved(std::span<const Region> tensors, int ranks) {
  std::vector<Buffer> parts;
  for (int r = 0; r < ranks; ++r) {
    for (const Region& tensor : tensors) {
      const std::uint64_t bytes = tensor.bytes() / static_cast<std::uint64_t>(ranks);
      Segments(tensor.parts()).resolve(bytes * static_cast<std::uint64_t>(r), bytes, parts);
    }
  }
  return Region(std::move(parts));
}

Region joined(std::span<const Region> tensors) {
  std::vector<Buffer> parts;
  for (const Region& tensor : tensors) {
    parts.insert(parts.end(), tensor.parts().begin(), tensor.parts().end());
  }
  return Region(std::move(parts));
}

void checkLists(std::span<const Region> smaller, std::span<const Region> larger, DType dtype,
                int ranks) {
  if (sizeOf(dtype) == 0) {
    throw Error(ErrorCode::InvalidArgument, fmt::format("{} is no dtype", static_cast<int>(dtype)));
  }
  if (smaller.size() != larger.size()) {
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("lists of {} and {} tensors", smaller.size(), larger.size()));
  }
  for (std::size_t i = 0; i < smaller.size(); ++i) {
    if (smaller[i].bytes() * static_cast<std::size_t>(ranks) != larger[i].bytes()) {
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("element {} of the lists has {} and {} bytes among {} ranks", i,
                              smaller[i].bytes(), larger[i].bytes(), ranks));
    }
  }
}

}  // namespace

Work Communicator::allReduce(const Region& input, const Region& output, std::uint64_t count,
                             DType dtype, const Reduction& reduction, const CallOptions& options) {
  return callWhole(*state_, Collective::AllReduce, count, 0, dtype, reduction, input, output,
                   options);
}

Work Communicator::broadcast(const Region& input, const Region& output, std::uint64_t count,
                             DType dtype, int root, const CallOptions& options) {
  return callWhole(*state_, Collective::Broadcast, count, root, dtype, {}, input, output, options);
}

Work Communicator::reduce(const Region& input, const Region& output, std::uint64_t count,
                          DType dtype, int root, const Reduction& reduction,
                          const CallOptions& options) {
  return callWhole(*state_, Collective::Reduce, count, root, dtype, reduction, input, output,
                   options);
}

Work Communicator::allGather(const Region& input, const Region& output, std::uint64_t count,
                             DType dtype, const CallOptions& options) {
  return callWhole(*state_, Collective::AllGather, count, 0, dtype, {}, input, output, options);
}

Work Communicator::allGather(const Region& input, const Region& output,
                             std::vector<std::uint64_t> counts, DType dtype,
                             const CallOptions& options) {
  return callAll(*state_, Collective::AllGather, counted(*state_, std::move(counts)), dtype, {},
                 input, output, options);
}

Work Communicator::reduceScatter(const Region& input, const Region& output, std::uint64_t count,
                                 DType dtype, const Reduction& reduction,
                                 const CallOptions& options) {
  return callWhole(*state_, Collective::ReduceScatter, count, 0, dtype, reduction, input, output,
                   options);
}

Work Communicator::reduceScatter(const Region& input, const Region& output,
                                 std::vector<std::uint64_t> counts, DType dtype,
                                 const Reduction& reduction, const CallOptions& options) {
  return callAll(*state_, Collective::ReduceScatter, counted(*state_, std::move(counts)), dtype,
                 reduction, input, output, options);
}

Work Communicator::gather(const Region& input, const Region& output, std::uint64_t count,
                          DType dtype, int root, const CallOptions& options) {
  return callWhole(*state_, Collective::Gather, count, root, dtype, {}, input, output, options);
}

Work Communicator::scatter(const Region& input, const Region& output, std::uint64_t count,
                           DType dtype, int root, const CallOptions& options) {
  return callWhole(*state_, Collective::Scatter, count, root, dtype, {}, input, output, options);
}

Work Communicator::allToAll(const Region& input, const Region& output, std::uint64_t count,
                            DType dtype, const CallOptions& options) {
  return callWhole(*state_, Collective::AllToAll, count, 0, dtype, {}, input, output, options);
}

Work Communicator::gather(const Region& input, const Region& output, const RankCounts& counts,
                          DType dtype, int root, const CallOptions& options) {
  return callRooted(*state_, Collective::Gather, counts, dtype, root, {input, output}, options);
}

Work Communicator::scatter(const Region& input, const Region& output, const RankCounts& counts,
                           DType dtype, int root, const CallOptions& options) {
  return callRooted(*state_, Collective::Scatter, counts, dtype, root, {input, output}, options);
}

Work Communicator::allToAll(const Region& input, const Region& output,
                            const std::vector<std::uint64_t>& sendCounts,
                            const std::vector<std::uint64_t>& recvCounts, DType dtype,
                            const CallOptions& options) {
  std::optional<Call> call;
  checkOrRefuse(*state_, options,
                [&] { call = ownAllToAll(*state_, sendCounts, recvCounts, dtype); });
  const FusedArgs mine{input, output};
  return state_->options.exchangeCounts ? submitExchanged(*state_, *call, mine, options)
                                        : submitCall(*state_, *call, mine, options);
}

Work Communicator::allToAll(const Region& input, const Region& output,
                            std::vector<std::uint64_t> pairCounts, DType dtype,
                            const CallOptions& options) {
  return callAll(*state_, Collective::AllToAll, counted(*state_, std::move(pairCounts)), dtype, {},
                 input, output, options);
}

// One byte from everybody to everybody: nobody has it all before the last has come.
Work Communicator::barrier(const CallOptions& options) {
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(state_->size) + 1);
  const Region input(bytes->data(), 1);
  const Region output(bytes->data() + 1, static_cast<std::size_t>(state_->size));
  CallOptions mine = options;
  mine.keepAlive = std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(
      bytes, options.keepAlive);
  return submitWhole(*state_, {Collective::AllGather, DType::UInt8, ReduceOp::Sum, true, 0, 1}, {},
                     input, output, mine);
}

Work Communicator::allReduceCoalesced(std::span<const Region> inputs,
                                      std::span<const Region> outputs, DType dtype,
                                      const Reduction& reduction, const CallOptions& options) {
  checkOrRefuse(*state_, options, [&] { checkLists(inputs, outputs, dtype, 1); });
  const Region input = joined(inputs);
  return allReduce(input, joined(outputs), input.bytes() / sizeOf(dtype), dtype, reduction,
                   options);
}

Work Communicator::allGatherCoalesced(std::span<const Region> inputs,
                                      std::span<const Region> outputs, DType dtype,
                                      const CallOptions& options) {
  checkOrRefuse(*state_, options, [&] { checkLists(inputs, outputs, dtype, state_->size); });
  const Region input = joined(inputs);
  return allGather(input, interleaved(outputs, state_->size), input.bytes() / sizeOf(dtype), dtype,
                   options);
}

Work Communicator::reduceScatterCoalesced(std::span<const Region> inputs,
                                          std::span<const Region> outputs, DType dtype,
                                          const Reduction& reduction, const CallOptions& options) {
  checkOrRefuse(*state_, options, [&] { checkLists(outputs, inputs, dtype, state_->size); });
  const Region output = joined(outputs);
  return reduceScatter(interleaved(inputs, state_->size), output, output.bytes() / sizeOf(dtype),
                       dtype, reduction, options);
}

}  // namespace byway
