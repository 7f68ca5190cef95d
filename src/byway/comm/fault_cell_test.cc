// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "byway/comm/fault_cell_test_util.h"

namespace byway::faults {
namespace {

constexpr std::array<const char*, kFaults> kNames{
    "killed", "forked and killed", "stopped",    "late",  "never calls", "count",
    "dtype",  "operation",         "collective", "aborts"};
constexpr std::array kOrder{Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter,
                            Collective::AllToAll,  Collective::Broadcast, Collective::Reduce,
                            Collective::Scatter,   Collective::Gather};
constexpr int kRoot = 0;

std::int32_t value(int call, int member, std::uint64_t index) {
  return static_cast<std::int32_t>((static_cast<std::uint64_t>(call) * 104729 +
                                    static_cast<std::uint64_t>(member) * 7919 + index * 31) %
                                   100003);
}

}  // namespace

std::string Cell::describe() const {
  return fmt::format(
      "rank {} {} in {} {} of {} elements, {} members", victim,
      kNames[static_cast<std::size_t>(fault)], isRelayed ? "relayed" : "direct",
      isBarrier() ? "barrier" : toString(kOrder[static_cast<std::size_t>(collective)]), count,
      members);
}

CellCalls::CellCalls(Communicator& communicator, const Cell& cell)
    : communicator_(communicator),
      cell_(cell),
      members_(cell.isRelayed ? cell.members : communicator.size()),
      self_(communicator.rank() < members_ ? communicator.rank() : -1) {
  const std::size_t most = (cell.count + 1) * static_cast<std::size_t>(members_);
  input_.resize(most);
  output_.resize(most);
}

CellCalls::Spec CellCalls::spec(bool odd) const {
  Spec spec{kOrder[static_cast<std::size_t>(cell_.isBarrier() ? 0 : cell_.collective)],
            DType::Int32, ReduceOp::Sum, cell_.count};
  if (!odd) return spec;
  if (cell_.fault == Fault::OtherCount) spec.count += 1;
  if (cell_.fault == Fault::OtherDType) spec.dtype = DType::UInt32;
  if (cell_.fault == Fault::OtherOp) spec.op = ReduceOp::Max;
  if (cell_.fault == Fault::OtherCollective) {
    spec.collective =
        spec.collective == Collective::AllGather ? Collective::AllReduce : Collective::AllGather;
  }
  return spec;
}

CallGroup CellCalls::group(std::uint64_t count) const {
  CallGroup group;
  for (int r = 0; r < members_; ++r) group.ranks.push_back(r);
  group.root = kRoot;
  group.count = count;
  return group;
}

std::uint64_t CellCalls::inputCount(const Spec& spec) const {
  const bool isRoot = self_ == kRoot;
  const auto all = spec.count * static_cast<std::uint64_t>(members_);
  switch (spec.collective) {
    case Collective::AllReduce:
    case Collective::AllGather:
    case Collective::Reduce:
    case Collective::Gather:
      return spec.count;
    case Collective::ReduceScatter:
    case Collective::AllToAll:
      return all;
    case Collective::Broadcast:
      return isRoot ? spec.count : 0;
    case Collective::Scatter:
      return isRoot ? all : 0;
  }
  return 0;
}

std::uint64_t CellCalls::outputCount(const Spec& spec) const {
  const bool isRoot = self_ == kRoot;
  const auto all = spec.count * static_cast<std::uint64_t>(members_);
  switch (spec.collective) {
    case Collective::AllReduce:
    case Collective::ReduceScatter:
    case Collective::Broadcast:
    case Collective::Scatter:
      return spec.count;
    case Collective::AllGather:
    case Collective::AllToAll:
      return all;
    case Collective::Reduce:
      return isRoot ? spec.count : 0;
    case Collective::Gather:
      return isRoot ? all : 0;
  }
  return 0;
}

Work CellCalls::start(int call, bool odd, Seconds timeout) {
  CallOptions options;
  options.timeout = timeout;
  const Spec s = spec(odd);
  if (cell_.isBarrier() && !(odd && cell_.fault == Fault::OtherCollective)) {
    return communicator_.barrier(options);
  }
  FusedArgs mine;
  if (self_ >= 0) {
    for (std::uint64_t i = 0; i < input_.size(); ++i) input_[i] = value(call, self_, i);
    std::fill(output_.begin(), output_.end(), -1);
    mine.input = Region(input_.data(), inputCount(s) * sizeof(std::int32_t));
    mine.output = Region(output_.data(), outputCount(s) * sizeof(std::int32_t));
  }
  const std::array groups{group(s.count)};
  return communicator_.fused(s.collective, groups, mine, s.dtype, s.op, options);
}

std::int32_t CellCalls::expected(int call, std::uint64_t index) const {
  const std::uint64_t c = cell_.count;
  const auto sum = [&](std::uint64_t at) {
    std::int32_t all = 0;
    for (int r = 0; r < members_; ++r) all += value(call, r, at);
    return all;
  };
  const auto own = static_cast<std::uint64_t>(self_);
  const auto block = static_cast<int>(index / c);
  switch (spec(false).collective) {
    case Collective::AllReduce:
    case Collective::Reduce:
      return sum(index);
    case Collective::ReduceScatter:
      return sum(own * c + index);
    case Collective::AllGather:
    case Collective::Gather:
      return value(call, block, index % c);
    case Collective::AllToAll:
      return value(call, block, own * c + index % c);
    case Collective::Broadcast:
      return value(call, kRoot, index);
    case Collective::Scatter:
      return value(call, kRoot, own * c + index);
  }
  return 0;
}

std::string CellCalls::check(int call) const {
  if (cell_.isBarrier() || self_ < 0) return "";
  for (std::uint64_t i = 0; i < outputCount(spec(false)); ++i) {
    if (output_[i] == expected(call, i)) continue;
    return fmt::format("call {}: element {} is {}, not {}", call, i, output_[i], expected(call, i));
  }
  return "";
}

bool CellCalls::isRelayed() const {
  const Spec s = spec(false);
  const std::array groups{group(s.count)};
  return communicator_.planFor(s.collective, groups, s.dtype, s.op).relayed;
}

}  // namespace byway::faults
