// SPDX-License-Identifier: BSD-3-Clause
#include "byway/comm/call.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "byway/base/hash.h"
#include "byway/schedule/loads.h"

namespace byway {
namespace {

[[noreturn]] void invalid(const std::string& what) {
  throw Error(ErrorCode::InvalidArgument, what);
}

constexpr std::uint64_t kMostElements = std::uint64_t{1} << 56;

// A caller in another language may pass any number.
void checkNames(Collective collective, DType dtype, ReduceOp op) {
  if (collective > Collective::Gather) {
    invalid(fmt::format("{} is no collective", static_cast<int>(collective)));
  }
  if (dtype > DType::Complex128) invalid(fmt::format("{} is no dtype", static_cast<int>(dtype)));
  if (op > ReduceOp::PremulSum) invalid(fmt::format("{} is no operation", static_cast<int>(op)));
}

void checkTypes(const Call& call) {
  checkNames(call.collective, call.dtype, call.reduction.op);
  if (!reduces(call.collective)) return;
  if (const char* why = whyUnsupported(call.dtype, call.reduction.op)) {
    invalid(fmt::format("{} of {} by {}: {}", toString(call.collective), toString(call.dtype),
                        toString(call.reduction.op), why));
  }
}

std::vector<Group> checkedGroups(const Call& call, int ranks) {
  std::vector<Group> groups;
  std::vector<int> groupOf(static_cast<std::size_t>(ranks), -1);
  for (std::size_t g = 0; g < call.groups.size(); ++g) {
    const CallGroup& group = call.groups[g];
    if (group.ranks.empty()) invalid(fmt::format("group {} has no ranks", g));
    for (const int rank : group.ranks) {
      if (rank < 0 || rank >= ranks) {
        invalid(fmt::format("group {} names rank {} of a communicator of {}", g, rank, ranks));
      }
      if (std::exchange(groupOf[static_cast<std::size_t>(rank)], static_cast<int>(g)) >= 0) {
        invalid(fmt::format("rank {} is in more than one place of the groups", rank));
      }
    }
    const int size = static_cast<int>(group.ranks.size());
    if (group.root < 0 || group.root >= size) {
      invalid(fmt::format("group {} has root {}; roots are positions in the group, 0 to {}", g,
                          group.root, size - 1));
    }
    groups.push_back({group.ranks, hasRoot(call.collective) ? group.root : 0});
  }
  return groups;
}

std::vector<std::uint64_t> blockCountsOf(const Call& call) {
  std::vector<std::uint64_t> counts;
  for (std::size_t g = 0; g < call.groups.size(); ++g) {
    const CallGroup& group = call.groups[g];
    const auto blocks = static_cast<std::size_t>(
        blocksPerGroup(call.collective, static_cast<int>(group.ranks.size())));
    if (!group.counts.empty() && group.counts.size() != blocks) {
      invalid(
          fmt::format("group {} has {} counts for its {} blocks", g, group.counts.size(), blocks));
    }
    for (std::size_t b = 0; b < blocks; ++b) {
      counts.push_back(group.counts.empty() ? group.count : group.counts[b]);
      if (counts.back() > kMostElements) {
        invalid(fmt::format("group {} has a count of {} elements; at most {} are possible", g,
                            counts.back(), kMostElements));
      }
    }
  }
  return counts;
}

PlanQuery queryOf(const Call& call, const std::vector<Group>& groups,
                  const std::vector<std::uint64_t>& counts) {
  const DType accumulator =
      reduces(call.collective) ? accumulatorOf(call.dtype, call.reduction.op) : call.dtype;
  return {call.collective,
          groups,
          counts,
          sizeOf(call.dtype),
          sizeOf(accumulator),
          std::max(1, call.liveGroups),
          call.ownCounts};
}

// Regions as lists without adjacent parts, so that equal memory is an equal list.
std::vector<Buffer> normalized(const std::vector<Buffer>& parts) {
  std::vector<Buffer> out;
  for (const Buffer& part : parts) {
    if (part.bytes == 0) continue;
    if (!out.empty() &&
        static_cast<std::byte*>(out.back().address) + out.back().bytes == part.address) {
      out.back().bytes += part.bytes;
    } else {
      out.push_back(part);
    }
  }
  return out;
}

bool sameMemory(const Segments& outer, std::uint64_t offset, const Segments& inner) {
  if (outer.parts().size() == 1 && inner.parts().size() == 1) {
    const auto* begin = static_cast<const std::byte*>(outer.parts()[0].address);
    return begin + offset == inner.parts()[0].address && outer.bytes() >= offset + inner.bytes();
  }
  std::vector<Buffer> part;
  outer.resolve(offset, inner.bytes(), part);
  const auto a = normalized(part);
  const auto b = normalized({inner.parts().begin(), inner.parts().end()});
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Buffer& x, const Buffer& y) {
    return x.address == y.address && x.bytes == y.bytes;
  });
}

void checkPartSizes(const char* name, const Region& region, std::size_t elementBytes) {
  for (const Buffer& part : region.parts()) {
    if ((part.bytes & (elementBytes - 1)) != 0) {  // element sizes are powers of two
      invalid(fmt::format("{} has a part of {} bytes, which is no multiple of the element's {}",
                          name, part.bytes, elementBytes));
    }
    if (part.address == nullptr && part.bytes > 0 && part.kind != MemoryKind::Phantom) {
      invalid(fmt::format("{} has a part of {} bytes at a null address", name, part.bytes));
    }
  }
}

void checkOutputParts(const Segments& output) {
  if (output.parts().size() < 2) return;
  std::vector<Buffer> parts(output.parts().begin(), output.parts().end());
  if (parts[0].kind == MemoryKind::Phantom) return;
  std::sort(parts.begin(), parts.end(),
            [](const Buffer& a, const Buffer& b) { return a.address < b.address; });
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (static_cast<std::byte*>(parts[i - 1].address) + parts[i - 1].bytes > parts[i].address) {
      invalid("parts of the output overlap each other");
    }
  }
}

Layout layoutOf(const Shape& shape, int rank, const std::vector<std::uint64_t>& counts,
                std::size_t elementBytes) {
  Layout layout;
  const auto inputs = inputBlocks(shape, rank);
  const auto outputs = outputBlocks(shape, rank);
  const auto offsetOf = [&](const std::vector<int>& blocks, int until, std::uint64_t& sum) {
    std::uint64_t offset = 0;
    for (const int b : blocks) {
      if (b == until) offset = sum;
      sum += counts[static_cast<std::size_t>(b)] * elementBytes;
    }
    return offset;
  };
  const auto& smaller = inputs.size() < outputs.size() ? inputs : outputs;
  const int own = smaller.size() == 1 ? smaller[0] : -1;
  layout.ownInInput = offsetOf(inputs, own, layout.inputBytes);
  layout.ownInOutput = offsetOf(outputs, own, layout.outputBytes);
  return layout;
}

void checkBytes(const char* name, Collective collective, bool isMember, std::uint64_t have,
                std::uint64_t need) {
  if (have == need) return;
  if (!isMember) {
    invalid(
        fmt::format("{} of {} has {} bytes on a rank that is in no group; ranks that only help "
                    "pass empty regions",
                    name, toString(collective), have));
  }
  invalid(fmt::format("{} of {} has {} bytes, but the counts ask for {}", name,
                      toString(collective), have, need));
}

void checkAliasing(Collective collective, const Layout& layout, const Segments& input,
                   const Segments& output) {
  checkOutputParts(output);
  if (!input.overlaps(output)) return;
  if (collective == Collective::AllToAll) {
    invalid("all-to-all cannot work in place: input and output overlap");
  }
  const bool inOutput = output.bytes() >= input.bytes();
  const bool exact = inOutput ? sameMemory(output, layout.ownInOutput, input)
                              : sameMemory(input, layout.ownInInput, output);
  if (!exact) {
    invalid(fmt::format(
        "input and output of {} overlap other than in place; in place is {}", toString(collective),
        input.bytes() == output.bytes() ? "the same memory"
                                        : "the rank's own block within the larger"));
  }
}

Fingerprint fingerprintOf(const Call& call, const std::vector<Group>& groups,
                          const std::vector<std::uint64_t>& counts, std::uint64_t planHash) {
  Fingerprint f;
  f.collective = call.collective;
  f.dtype = call.dtype;
  f.barrier = call.barrier;
  f.ownCounts = call.ownCounts;
  f.planHash = planHash;
  if (reduces(call.collective)) {
    f.op = call.reduction.op;
    if (f.op == ReduceOp::PremulSum) {
      f.factorHash = hashMix(std::bit_cast<std::uint64_t>(call.reduction.factor.real()),
                             std::bit_cast<std::uint64_t>(call.reduction.factor.imag()));
    }
  }
  if (hasRoot(call.collective) && groups.size() == 1) {
    f.root = groups[0].ranks[static_cast<std::size_t>(groups[0].root)];
  }
  if (call.ownCounts) return f;
  for (const std::uint64_t count : counts) {
    f.count += count;
    f.countsHash = hashMix(f.countsHash, count);
  }
  return f;
}

CallData dataOf(const CommunicatorState& state, const Region& input, const Region& output,
                const CallOptions& options) {
  CallData data{Segments(input.parts()), Segments(output.parts()),
                options.timeout.value_or(state.options.timeout), options.keepAlive};
  if (!(data.timeout >= 0)) invalid(fmt::format("{} is no timeout", data.timeout));
  return data;
}

void checkMemory(Collective collective, DType dtype, bool isMember, const Layout& layout,
                 const Region& input, const Region& output, const CallData& data) {
  const std::size_t elementBytes = sizeOf(dtype);
  checkPartSizes("the input", input, elementBytes);
  checkPartSizes("the output", output, elementBytes);
  checkBytes("the input", collective, isMember, data.input.bytes(), layout.inputBytes);
  checkBytes("the output", collective, isMember, data.output.bytes(), layout.outputBytes);
  checkAliasing(collective, layout, data.input, data.output);
}

// Everything but the plan.
OperationRequest regionsOf(const CommunicatorState& state, const Call& call, const Shape& shape,
                           std::vector<std::uint64_t> counts, const FusedArgs& mine,
                           const CallOptions& options) {
  OperationRequest request;
  request.blockCounts = std::move(counts);
  request.dtype = call.dtype;
  request.op = reduces(call.collective) ? call.reduction.op : ReduceOp::Sum;
  request.factor = call.reduction.factor;
  const Layout layout = layoutOf(shape, state.rank, request.blockCounts, sizeOf(call.dtype));
  const bool isMember = membershipOf(shape, state.rank).group >= 0;
  request.stageKind = state.options.memory;
  CallData data = dataOf(state, mine.input, mine.output, options);
  checkMemory(call.collective, call.dtype, isMember, layout, mine.input, mine.output, data);
  request.take(std::move(data));
  return request;
}

void setPlan(OperationRequest& request, const Call& call, const std::vector<Group>& groups,
             std::shared_ptr<const VerifiedSchedule> schedule) {
  request.ownCounts = call.ownCounts;
  request.stamp = toStamp(fingerprintOf(call, groups, request.blockCounts, schedule->hash()));
  request.schedule = std::move(schedule);
}

std::vector<Group> checkedCall(const CommunicatorState& state, const Call& call) {
  checkTypes(call);
  if (call.liveGroups < 0) {
    invalid(fmt::format("{} live groups; 0 states nothing, and this one is live at least",
                        call.liveGroups));
  }
  return checkedGroups(call, state.size);
}

struct Made {
  OperationRequest request;
  PlanCache::Found found;
};

Made makeRequest(CommunicatorState& state, const Call& call, const FusedArgs& mine,
                 const CallOptions& options) {
  const auto groups = checkedCall(state, call);
  auto counts = blockCountsOf(call);
  const PlanQuery query = queryOf(call, groups, counts);
  Made made;
  if (call.ownCounts)
    made.found.plan = state.plans.get(query);
  else
    made.found = state.plans.ask(query, false);
  if (made.found.plan) {
    auto schedule = made.found.plan->chosen;
    made.request =
        regionsOf(state, call, schedule->schedule().shape, std::move(counts), mine, options);
    setPlan(made.request, call, groups, std::move(schedule));
    return made;
  }
  try {
    made.request = prepareCall(state, call, mine, options);
  } catch (const Error&) {
    if (made.found.first) state.plans.forget(*made.found.coming);
    throw;
  }
  return made;
}

// Takes the call's number now and starts when the plan has come.
Work submitComing(CommunicatorState& state, const std::shared_ptr<Channel>& channel,
                  const Call& call, Made made, const CallOptions& options) {
  const auto coming = made.found.coming;
  if (made.found.first) bringPlan(state, coming, options);
  const auto operation = state.engine->submit(*channel, OperationRequest(made.request));
  coming->whenSettled([state = state.shared_from_this(), channel, operation, coming, call,
                       request = std::move(made.request)]() mutable {
    try {
      setPlan(request, call, checkedGroups(call, state->size), coming->get()->chosen);
      state->engine->supply(*channel, *operation, std::move(request));
    } catch (const Error& error) {
      state->engine->reject(*channel, *operation, error);
    }
  });
  return {state.engine, operation};
}

}  // namespace

std::shared_ptr<const Plan> planOf(CommunicatorState& state, const Call& call, bool prepare) {
  checkTypes(call);
  const auto groups = checkedGroups(call, state.size);
  const auto counts = blockCountsOf(call);
  const PlanQuery query = queryOf(call, groups, counts);
  if (!prepare) return state.plans.look(query);
  state.engine->locked([&] { state.prepared.clear(); });
  const auto found = state.plans.ask(query, true);
  if (found.plan) return found.plan;
  bringPlan(state, found.coming, {});
  found.coming->wait();
  return found.coming->get();
}

OperationRequest prepareCall(CommunicatorState& state, const Call& call, const FusedArgs& mine,
                             const CallOptions& options) {
  const auto groups = checkedCall(state, call);
  OperationRequest request = regionsOf(state, call, makeShape(call.collective, state.size, groups),
                                       blockCountsOf(call), mine, options);
  request.stamp = toStamp(fingerprintOf(call, groups, request.blockCounts, 0));
  return request;
}

void planCall(CommunicatorState& state, const Call& call, OperationRequest& request) {
  const auto groups = checkedGroups(call, state.size);
  request.blockCounts = blockCountsOf(call);
  setPlan(request, call, groups,
          state.plans.get(queryOf(call, groups, request.blockCounts))->chosen);
}

CallGroup everybody(const CommunicatorState& state) {
  CallGroup group;
  group.ranks.resize(static_cast<std::size_t>(state.size));
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  return group;
}

void refuseCall(CommunicatorState& state, const CallOptions& options, const Error& error) {
  if (!options.checkOnly) state.engine->refuse(*state.open(), error);
  throw Error(error.code(), error.what(), state.rank);
}

namespace {

Call wholeCall(const CommunicatorState& state, const CallKey& key, const Reduction& reduction) {
  CallGroup group = everybody(state);
  group.count = key.count;
  group.root = key.root;
  return {key.collective, {std::move(group)}, key.dtype,
          reduction,      key.barrier,        key.barrier ? 1 : 0};
}

// Binds the call, and keeps that for the next one like it; not where stage memory cuts it into
// rounds.
void prepare(CommunicatorState& state, const CallKey& key, std::shared_ptr<Channel> channel,
             OperationRequest& request) {
  const Schedule& s = request.schedule->schedule();
  const std::size_t elementBytes = sizeOf(request.dtype);
  const std::size_t accumulatorBytes = sizeOf(accumulatorOf(request.dtype, request.op));
  std::vector<double> blockBytes;
  for (const std::uint64_t count : request.blockCounts) {
    blockBytes.push_back(static_cast<double>(count) * static_cast<double>(elementBytes));
  }
  const double ratio = static_cast<double>(accumulatorBytes) / static_cast<double>(elementBytes);
  if (roundsFor(s, blockBytes, ratio, state.options.stageQuota).count != 1) return;
  request.bound = std::make_shared<const Binding>(bind(*request.schedule, state.rank,
                                                       {request.blockCounts, {}, {}}, elementBytes,
                                                       accumulatorBytes));
  OperationRequest again = request;
  again.take({});
  PreparedCall call;
  call.channel = std::move(channel);
  call.call.request = std::move(again);
  call.layout = layoutOf(s.shape, state.rank, request.blockCounts, elementBytes);
  state.engine->locked([&] { state.prepared.keep(key, std::move(call)); });
}

// Of a call that is made for the first time, or is never kept.
Work submitFirst(CommunicatorState& state, const CallKey& key, const Reduction& reduction,
                 const FusedArgs& mine, const CallOptions& options, bool isKept) {
  const auto channel = state.open();
  const Call call = wholeCall(state, key, reduction);
  if (!isKept) return submitCall(state, call, mine, options);
  Made made;
  checkOrRefuse(state, options, [&] { made = makeRequest(state, call, mine, options); });
  if (!made.found.plan) return submitComing(state, channel, call, std::move(made), options);
  prepare(state, key, channel, made.request);
  return {state.engine, state.engine->submit(*channel, std::move(made.request))};
}

}  // namespace

Work submitWhole(CommunicatorState& state, const CallKey& key, const Reduction& reduction,
                 const Region& input, const Region& output, const CallOptions& options) {
  const bool isKept = !options.checkOnly && reduction.op != ReduceOp::PremulSum;
  if (!isKept) return submitFirst(state, key, reduction, {input, output}, options, false);
  // All under one lock: to take another costs a call of a few bytes a tenth of its time.
  std::optional<Error> wrong;
  std::shared_ptr<CollectiveOperation> underWay;
  std::optional<std::int64_t> over;  // its number
  state.engine->locked([&] {
    PreparedCall* const known = state.prepared.find(key);
    if (known == nullptr) return;
    bool isChecked = false;
    try {
      CallData data = dataOf(state, input, output, options);
      if (!known->wasOn(input, output)) {
        checkMemory(key.collective, key.dtype, true, known->layout, input, output, data);
        known->isOn(input, output);
      }
      isChecked = true;
      const auto& operation =
          state.engine->submitLocked(*known->channel, known->call, std::move(data));
      if (operation->done() && !operation->failed())
        over = operation->sequence();
      else
        underWay = operation;
    } catch (const Error& error) {
      if (isChecked) throw;
      wrong = error;
    }
  });
  if (over) return Work(*over);
  if (underWay) return {state.engine, std::move(underWay)};
  if (wrong) refuseCall(state, options, *wrong);
  return submitFirst(state, key, reduction, {input, output}, options, true);
}

Work submitCall(CommunicatorState& state, const Call& call, const FusedArgs& mine,
                const CallOptions& options) {
  const auto channel = state.open();
  Made made;
  checkOrRefuse(state, options, [&] {
    if (options.checkOnly) {
      prepareCall(state, call, mine, options);
    } else {
      made = makeRequest(state, call, mine, options);
    }
  });
  if (options.checkOnly) return {};
  if (!made.found.plan) return submitComing(state, channel, call, std::move(made), options);
  return {state.engine, state.engine->submit(*channel, std::move(made.request))};
}

}  // namespace byway
