// SPDX-License-Identifier: BSD-3-Clause
// Direct and relayed results have the same bits, whatever the dtype, the operation and the size.
#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "byway/base/hash.h"
#include "byway/comm/virtual_world.h"
#include "byway/kernels/convert.h"
#include "byway/planner/planner.h"

namespace byway {
namespace {

constexpr int kRanks = 4;

std::vector<std::uint64_t> sizes() {
  std::vector<std::uint64_t> all;
  for (std::uint64_t n = 0; n <= 300; ++n) all.push_back(n);
  for (int k = 9; k <= 20; ++k) {
    const std::uint64_t two = std::uint64_t{1} << k;
    for (const std::uint64_t n : {two - 1, two, two + 1}) all.push_back(n);
  }
  return all;
}

std::vector<Group> pairs() { return {{{0, 1}, 0}, {{2, 3}, 1}}; }
std::vector<Group> three() { return {{{2, 0, 3}, 1}}; }

std::shared_ptr<const Plan> planned(Collective collective, const std::vector<Group>& groups,
                                    DType dtype, ReduceOp op, const std::string& force) {
  static const Topology topology = meshTopology(kRanks, 1e9);
  PlanRequest request;
  request.collective = collective;
  request.ranks = kRanks;
  request.groups = groups;
  request.force = force;
  request.partialWeight =
      static_cast<double>(sizeOf(accumulatorOf(dtype, op))) / static_cast<double>(sizeOf(dtype));
  request.blockBytes.assign(makeShape(collective, kRanks, groups).blocks.size(), 1 << 22);
  return std::make_shared<const Plan>(plan(request, topology));
}

// A relayed plan, also where wide partial sums make it slower than direct.
std::shared_ptr<const Plan> relayed(Collective collective, const std::vector<Group>& groups,
                                    DType dtype, ReduceOp op) {
  auto chosen = planned(collective, groups, dtype, op, "");
  for (const ConsideredCandidate& candidate : chosen->considered) {
    if (chosen->relayed()) break;
    if (!candidate.direct) chosen = planned(collective, groups, dtype, op, candidate.name);
  }
  return chosen;
}

// Bits from a hash of rank, block and position: NaN, infinities and denormals are among them.
std::vector<std::byte> content(int rank, std::uint64_t bytes, DType dtype) {
  std::vector<std::byte> data(bytes + 8);
  std::uint64_t h = static_cast<std::uint64_t>(rank) + 1;
  for (std::uint64_t at = 0; at < bytes; at += 8) {
    h = hashMix(h, at);
    std::memcpy(data.data() + at, &h, 8);
  }
  data.resize(bytes);
  if (dtype == DType::Bool) {
    for (std::byte& b : data) b &= std::byte{1};
  }
  return data;
}

struct Result {
  std::vector<std::vector<std::byte>> outputs;
  bool operator==(const Result&) const = default;
};

Result runOnce(VirtualWorld& world, const std::shared_ptr<const VerifiedSchedule>& schedule,
               std::uint64_t count, DType dtype, ReduceOp op) {
  const Shape& shape = schedule->schedule().shape;
  VirtualCall call;
  call.schedule = schedule;
  call.blockCounts.assign(shape.blocks.size(), count);
  call.dtype = dtype;
  call.op = op;
  call.factor = {0.7, 0};
  std::vector<std::vector<std::byte>> inputs;
  Result result;
  for (int r = 0; r < kRanks; ++r) {
    inputs.push_back(content(r, inputBlocks(shape, r).size() * count * sizeOf(dtype), dtype));
    result.outputs.emplace_back(outputBlocks(shape, r).size() * count * sizeOf(dtype));
  }
  for (std::size_t r = 0; r < kRanks; ++r) {
    const Buffer in{inputs[r].data(), inputs[r].size(), MemoryKind::Host, 0};
    const Buffer out{result.outputs[r].data(), result.outputs[r].size(), MemoryKind::Host, 0};
    call.inputs.emplace_back(std::span(&in, 1));
    call.outputs.emplace_back(std::span(&out, 1));
  }
  world.run(call);
  return result;
}

class SameBits : public testing::TestWithParam<DType> {};

TEST_P(SameBits, DirectAndRelayed) {
  const DType dtype = GetParam();
  VirtualWorld world(meshTopology(kRanks, 1e9));
  constexpr Collective kReducing[] = {Collective::AllReduce, Collective::ReduceScatter,
                                      Collective::Reduce};
  for (int o = 0; o <= static_cast<int>(ReduceOp::PremulSum); ++o) {
    const auto op = static_cast<ReduceOp>(o);
    if (whyUnsupported(dtype, op) != nullptr) continue;
    for (const Collective collective : kReducing) {
      for (const auto& groups : {pairs(), three()}) {
        const auto chosen = relayed(collective, groups, dtype, op);
        const auto direct = planned(collective, groups, dtype, op, "direct");
        ASSERT_TRUE(chosen->relayed()) << toString(collective);
        for (const std::uint64_t size : sizes()) {
          // Each size meets one collective and one set of groups; neighbours meet the others.
          const std::uint64_t turn = size % 6;
          if (turn / 2 != static_cast<std::uint64_t>(collective == kReducing[1]) +
                              2 * static_cast<std::uint64_t>(collective == kReducing[2]) ||
              (turn % 2 == 0) != (groups.size() == 2)) {
            continue;
          }
          ASSERT_EQ(runOnce(world, chosen->chosen, size, dtype, op),
                    runOnce(world, direct->chosen, size, dtype, op))
              << toString(collective) << ' ' << toString(op) << " size " << size;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, SameBits,
                         testing::Values(DType::Bool, DType::UInt8, DType::UInt16, DType::UInt32,
                                         DType::UInt64, DType::Int8, DType::Int16, DType::Int32,
                                         DType::Int64, DType::Float16, DType::BFloat16,
                                         DType::Float32, DType::Float64, DType::Float8E4M3FN,
                                         DType::Float8E5M2, DType::Float8E4M3FNUZ,
                                         DType::Float8E5M2FNUZ, DType::Complex64,
                                         DType::Complex128),
                         [](const auto& tested) { return std::string(toString(tested.param)); });

}  // namespace
}  // namespace byway
