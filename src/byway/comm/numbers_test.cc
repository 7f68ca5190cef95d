// SPDX-License-Identifier: BSD-3-Clause
// Rounding and range of whole collectives, with values worked out by hand.
#include <cstring>

#include <gtest/gtest.h>

#include "byway/comm/virtual_world.h"
#include "byway/planner/planner.h"

namespace byway {
namespace {

constexpr int kRanks = 8;
constexpr std::uint16_t kBFloat1 = 0x3F80, kBFloat256 = 0x4380, kBFloat264 = 0x4384;
constexpr std::uint16_t kHalf60000 = 0x7B53;

// Every rank contributes its `value` everywhere; returns the first element of the group's rank 0.
template <typename T>
T result(Collective collective, int active, DType dtype, ReduceOp op, const std::vector<T>& values,
         const std::string& route) {
  const Topology topology = meshTopology(kRanks, 1e9);
  PlanRequest request;
  request.collective = collective;
  request.ranks = kRanks;
  request.groups.emplace_back();
  for (int i = 0; i < active; ++i) request.groups[0].ranks.push_back(i);
  request.partialWeight = static_cast<double>(sizeOf(accumulatorOf(dtype, op))) / sizeof(T);
  const Shape shape = makeShape(collective, kRanks, request.groups);
  request.blockBytes.assign(shape.blocks.size(), 1 << 24);
  request.force = route;
  const Plan p = plan(request, topology);
  EXPECT_EQ(p.relayed(), route.empty() && active < kRanks);
  const std::uint64_t count = 4096;
  std::vector<std::vector<T>> inputs;
  std::vector<std::vector<T>> outputs;
  VirtualCall call;
  call.schedule = p.chosen;
  call.blockCounts.assign(shape.blocks.size(), count);
  call.dtype = dtype;
  call.op = op;
  for (int r = 0; r < kRanks; ++r) {
    const T mine = values[static_cast<std::size_t>(r) % values.size()];
    inputs.emplace_back(inputBlocks(shape, r).size() * count, mine);
    outputs.emplace_back(outputBlocks(shape, r).size() * count);
  }
  for (std::size_t r = 0; r < kRanks; ++r) {
    const Buffer in{inputs[r].data(), inputs[r].size() * sizeof(T), MemoryKind::Host, 0};
    const Buffer out{outputs[r].data(), outputs[r].size() * sizeof(T), MemoryKind::Host, 0};
    call.inputs.emplace_back(std::span(&in, 1));
    call.outputs.emplace_back(std::span(&out, 1));
  }
  VirtualWorld(topology).run(call);
  for (const T element : outputs[0]) {
    if (element != outputs[0][0]) ADD_FAILURE() << "elements of one value became different";
  }
  return outputs[0][0];
}

constexpr Collective kReducing[] = {Collective::AllReduce, Collective::ReduceScatter,
                                    Collective::Reduce};

// 256 + 7 is 263, half-way between 262 and 264 of bfloat16; summed one by one in bfloat16 it stays
// 256.
TEST(Numbers, BFloat16SumsKeepSmallTermsWhicheverRankHoldsTheLargeOne) {
  for (const Collective collective : kReducing) {
    for (std::size_t holder = 0; holder < kRanks; ++holder) {
      std::vector<std::uint16_t> values(kRanks, kBFloat1);
      values[holder] = kBFloat256;
      EXPECT_EQ(result(collective, kRanks, DType::BFloat16, ReduceOp::Sum, values, ""), kBFloat264)
          << toString(collective) << " rank " << holder;
    }
  }
}

// Eight times 60000 is far above float16's largest 65504.
TEST(Numbers, Float16AveragesDoNotOverflow) {
  for (const Collective collective : kReducing) {
    for (const int active : {4, 8}) {
      for (const char* route : {"", "direct"}) {
        EXPECT_EQ(result<std::uint16_t>(collective, active, DType::Float16, ReduceOp::Avg,
                                        {kHalf60000}, route),
                  kHalf60000);
      }
    }
  }
}

TEST(Numbers, Int8AveragesAreTakenInSixtyFourBitsAndTruncated) {
  for (const Collective collective : kReducing) {
    EXPECT_EQ(result<std::int8_t>(collective, 4, DType::Int8, ReduceOp::Avg, {100}, "direct"), 100);
    EXPECT_EQ(result<std::int8_t>(collective, 2, DType::Int8, ReduceOp::Avg, {-3, -4}, ""), -3);
    EXPECT_EQ(result<std::int8_t>(collective, 2, DType::Int8, ReduceOp::Avg, {3, 4}, ""), 3);
  }
}

}  // namespace
}  // namespace byway
