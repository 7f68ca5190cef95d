// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/traced_call.h"

#include <ATen/ops/view_as_complex.h>

#include <unordered_map>
#include <unordered_set>

#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "byway/torch/torch_version.h"

// The names that torch 2.13 calls deprecated are those that all of 2.11 to 2.14 have.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace byway::pytorch {
namespace {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using Group = c10::intrusive_ptr<c10d::ProcessGroup>;
using Tensors = std::vector<at::Tensor>;

c10d::ReduceOp reduceOp(const TracedCall& call) {
  using Op = c10d::ReduceOp::RedOpType;
  static const std::unordered_map<std::string, Op> names{
      {"sum", Op::SUM}, {"avg", Op::AVG},   {"product", Op::PRODUCT}, {"min", Op::MIN},
      {"max", Op::MAX}, {"band", Op::BAND}, {"bor", Op::BOR},         {"bxor", Op::BXOR}};
  if (call.op == "premul_sum") {
    if (call.factor) return makePreMulSum(*call.factor);
    TORCH_CHECK_VALUE(call.scale, "byway: premul_sum needs a factor");
    return makePreMulSum(*call.scale);
  }
  const auto found = names.find(call.op);
  TORCH_CHECK_VALUE(found != names.end(), "byway: unknown reduce operation '", call.op, "'");
  return found->second;
}

// What every kind's options have in common, and what some have.
template <typename Options>
Options optionsFor(const TracedCall& call, bool async) {
  Options options;
  if (call.timeout.count() >= 0) options.timeout = call.timeout;
  options.asyncOp = async;
  if constexpr (requires { options.reduceOp; }) options.reduceOp = reduceOp(call);
  if constexpr (requires { options.rootRank; }) options.rootRank = call.peers.at(0);
  return options;
}

bool isRoot(const Group& group, const TracedCall& call) {
  return group->getRank() == call.peers.at(0);
}

// The flat list of outputs, cut into one list for each rank.
std::vector<Tensors> outputsByRank(const TracedCall& call) {
  const auto each = call.ins.size();
  TORCH_CHECK_VALUE(each != 0 && call.outs.size() % each == 0, "byway: ", call.kind, " got ",
                    call.outs.size(), " outputs for ", each, " inputs");
  std::vector<Tensors> lists;
  for (auto it = call.outs.begin(); it != call.outs.end(); it += static_cast<std::ptrdiff_t>(each))
    lists.emplace_back(it, it + static_cast<std::ptrdiff_t>(each));
  return lists;
}

WorkPtr receive(const Group& group, const at::Tensor& out, int64_t peer, int64_t tag) {
  Tensors one{out};
  return peer < 0 ? group->recvAnysource(one, static_cast<int>(tag))
                  : group->recv(one, static_cast<int>(peer), static_cast<int>(tag));
}

// Sends and receives that are posted together: `peers` and `tags` name the inputs' ends, then the
// outputs'.
std::vector<WorkPtr> issueBatch(const Group& group, const TracedCall& call) {
  const auto count = call.ins.size() + call.outs.size();
  TORCH_CHECK_VALUE(call.peers.size() == count && call.tags.size() == count, "byway: a batch of ",
                    count, " transfers got ", call.peers.size(), " peers and ", call.tags.size(),
                    " tags");
  if (count == 0) return {};
  const auto device = (call.ins.empty() ? call.outs : call.ins).front().device().type();
  const bool together = group->getBackend(device)->supportsCoalescing();
  std::vector<WorkPtr> works;
  if (together) group->startCoalescing(device);
  for (size_t i = 0; i < call.outs.size(); ++i) {
    const auto at = call.ins.size() + i;
    works.push_back(receive(group, call.outs[i], call.peers[at], call.tags[at]));
  }
  for (size_t i = 0; i < call.ins.size(); ++i) {
    Tensors one{call.ins[i]};
    works.push_back(
        group->send(one, static_cast<int>(call.peers[i]), static_cast<int>(call.tags[i])));
  }
  if (together) works = {group->endCoalescing(device)};
  return works;
}

WorkPtr scatter(const Group& group, const TracedCall& call, bool async) {
  Tensors out{call.outs.at(0)};
  std::vector<Tensors> ins;
  if (isRoot(group, call)) ins = {call.ins};
  return group->scatter(out, ins, optionsFor<c10d::ScatterOptions>(call, async));
}

WorkPtr gather(const Group& group, const TracedCall& call, bool async) {
  Tensors in{call.ins.at(0)};
  std::vector<Tensors> outs;
  if (isRoot(group, call)) outs = {call.outs};
  return group->gather(outs, in, optionsFor<c10d::GatherOptions>(call, async));
}

WorkPtr allToAllSingle(const Group& group, const TracedCall& call, bool async) {
  auto out = call.outs.at(0);
  auto in = call.ins.at(0);
  auto outSplits = call.outSplits;
  auto inSplits = call.inSplits;
  return group->alltoall_base(out, in, outSplits, inSplits,
                              optionsFor<c10d::AllToAllOptions>(call, async));
}

WorkPtr barrier(const Group& group, const TracedCall& call, bool async) {
  auto options = optionsFor<c10d::BarrierOptions>(call, async);
  options.device = at::Device(at::kCPU);
  return group->barrier(options);
}

using Issue = WorkPtr (*)(const Group&, TracedCall&, bool);

const std::unordered_map<std::string, Issue>& issuers() {
  static const std::unordered_map<std::string, Issue> table{
      {"all_reduce",
       [](const Group& g, TracedCall& c, bool async) {
         return g->allreduce(c.outs, optionsFor<c10d::AllreduceOptions>(c, async));
       }},
      {"all_reduce_coalesced",
       [](const Group& g, TracedCall& c, bool async) {
         return g->allreduce_coalesced(c.outs,
                                       optionsFor<c10d::AllreduceCoalescedOptions>(c, async));
       }},
      {"broadcast",
       [](const Group& g, TracedCall& c, bool async) {
         return g->broadcast(c.outs, optionsFor<c10d::BroadcastOptions>(c, async));
       }},
      {"reduce",
       [](const Group& g, TracedCall& c, bool async) {
         return g->reduce(c.outs, optionsFor<c10d::ReduceOptions>(c, async));
       }},
      {"all_gather",
       [](const Group& g, TracedCall& c, bool async) {
         std::vector<Tensors> outs{c.outs};
         return g->allgather(outs, c.ins, optionsFor<c10d::AllgatherOptions>(c, async));
       }},
      {"all_gather_single",
       [](const Group& g, TracedCall& c, bool async) {
         return g->_allgather_base(c.outs.at(0), c.ins.at(0),
                                   optionsFor<c10d::AllgatherOptions>(c, async));
       }},
      {"all_gather_coalesced",
       [](const Group& g, TracedCall& c, bool async) {
         auto lists = outputsByRank(c);
         return g->allgather_coalesced(lists, c.ins, optionsFor<c10d::AllgatherOptions>(c, async));
       }},
      {"all_gather_single_coalesced",
       [](const Group& g, TracedCall& c, bool async) {
         return g->allgather_into_tensor_coalesced(c.outs, c.ins,
                                                   optionsFor<c10d::AllgatherOptions>(c, async));
       }},
      {"reduce_scatter",
       [](const Group& g, TracedCall& c, bool async) {
         std::vector<Tensors> ins{c.ins};
         return g->reduce_scatter(c.outs, ins, optionsFor<c10d::ReduceScatterOptions>(c, async));
       }},
      {"reduce_scatter_single",
       [](const Group& g, TracedCall& c, bool async) {
         return g->_reduce_scatter_base(c.outs.at(0), c.ins.at(0),
                                        optionsFor<c10d::ReduceScatterOptions>(c, async));
       }},
      {"reduce_scatter_single_coalesced",
       [](const Group& g, TracedCall& c, bool async) {
         return g->reduce_scatter_tensor_coalesced(
             c.outs, c.ins, optionsFor<c10d::ReduceScatterOptions>(c, async));
       }},
      {"scatter", [](const Group& g, TracedCall& c, bool async) { return scatter(g, c, async); }},
      {"gather", [](const Group& g, TracedCall& c, bool async) { return gather(g, c, async); }},
      {"all_to_all",
       [](const Group& g, TracedCall& c, bool async) {
         return g->alltoall(c.outs, c.ins, optionsFor<c10d::AllToAllOptions>(c, async));
       }},
      {"all_to_all_single",
       [](const Group& g, TracedCall& c, bool async) { return allToAllSingle(g, c, async); }},
      {"send",
       [](const Group& g, TracedCall& c, bool) {
         return g->send(c.ins, static_cast<int>(c.peers.at(0)), static_cast<int>(c.tags.at(0)));
       }},
      {"recv", [](const Group& g, TracedCall& c,
                  bool) { return receive(g, c.outs.at(0), c.peers.at(0), c.tags.at(0)); }},
      {"barrier", [](const Group& g, TracedCall& c, bool async) { return barrier(g, c, async); }}};
  return table;
}

// Products of complex numbers are not products of their parts; every other call moves or sums the
// parts.
void restoreComplex(TracedCall& call) {
  if (!call.complex || call.op != "product") return;
  for (auto* tensors : {&call.ins, &call.outs})
    for (auto& tensor : *tensors) tensor = at::view_as_complex(tensor);
}

}  // namespace

bool isInPlace(const std::string& kind) {
  static const std::unordered_set<std::string> kinds{"all_reduce", "all_reduce_coalesced",
                                                     "broadcast", "reduce"};
  return kinds.count(kind) != 0;
}

std::vector<WorkPtr> issue(TracedCall& call, bool async) {
  const auto group = c10d::resolve_process_group(call.group);
  restoreComplex(call);
  if (call.kind == "batch") return issueBatch(group, call);
  const auto found = issuers().find(call.kind);
  TORCH_CHECK_VALUE(found != issuers().end(), "byway: unknown kind of call '", call.kind, "'");
  auto work = found->second(group, call, async);
  if (!work) return {};
  return {std::move(work)};
}

void waitAll(const std::vector<WorkPtr>& works, std::chrono::milliseconds timeout) {
  for (const auto& work : works) {
    if (work) work->wait(timeout.count() >= 0 ? timeout : kNoTimeout);
  }
}

}  // namespace byway::pytorch
