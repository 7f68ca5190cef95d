// SPDX-License-Identifier: BSD-3-Clause
// Collectives of groups, in calls that every rank makes: ranks outside a group carry part of its
// data. Needs at least four ranks:  byway run -n 4 fused_relay
//
// The links are stated as a mesh, so that relay pays. On one host, whose memory all ranks share,
// this shows how such calls are made and not that they are fast; `byway demo` slows the links down.
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "byway/comm/communicator.h"

namespace {

using byway::CallGroup;
using byway::Collective;
using byway::DType;
using byway::FusedArgs;
using byway::Region;

constexpr std::uint64_t kCount = 250000;

template <typename T>
Region regionOf(std::vector<T>& v) {
  return {v.data(), v.size() * sizeof(T)};
}

CallGroup groupOf(std::vector<int> ranks) {
  CallGroup group;
  group.ranks = std::move(ranks);
  group.count = kCount;
  return group;
}

void tellPlan(byway::Communicator& world, Collective collective,
              const std::vector<CallGroup>& groups) {
  if (world.rank() != 0) return;
  const auto plan = world.planFor(collective, groups, DType::Float32);
  std::printf("%s, %zu group%s: %s, predicted %.2f times as fast as direct\n", toString(collective),
              groups.size(), groups.size() == 1 ? "" : "s", plan.relayed ? "relayed" : "direct",
              plan.directPredicted / plan.predicted);
}

// One group of two ranks, out of place. The others pass nothing, and their memory is not touched.
void maximumOfOnePair(byway::Communicator& world) {
  const std::vector<CallGroup> groups{groupOf({0, 1})};
  tellPlan(world, Collective::AllReduce, groups);
  const bool member = world.rank() < 2;
  std::vector<float> input(member ? kCount : 0, static_cast<float>(world.rank() + 1));
  std::vector<float> output(input.size());
  const FusedArgs mine{regionOf(input), regionOf(output)};
  world.fused(Collective::AllReduce, groups, mine, DType::Float32, byway::ReduceOp::Max).wait();
  if (member)
    std::printf("rank %d: the pair's maximum is %g\n", world.rank(), output.back());
  else
    std::printf("rank %d: helped\n", world.rank());
}

// Two groups in one call, in place: a rank's input is its own block within the output.
void gatherOfTwoPairs(byway::Communicator& world) {
  const std::vector<CallGroup> groups{groupOf({0, 1}), groupOf({2, 3})};
  tellPlan(world, Collective::AllGather, groups);
  FusedArgs mine;
  std::vector<float> output(world.rank() < 4 ? 2 * kCount : 0);
  if (!output.empty()) {
    float* own = output.data() + static_cast<std::size_t>(world.rank() % 2) * kCount;
    for (std::uint64_t i = 0; i < kCount; ++i) own[i] = static_cast<float>(10 * world.rank());
    mine = {Region(own, kCount * sizeof(float)), regionOf(output)};
  }
  world.fused(Collective::AllGather, groups, mine, DType::Float32).wait();
  if (output.empty())
    std::printf("rank %d: helped both\n", world.rank());
  else
    std::printf("rank %d: gathered %g and %g\n", world.rank(), output[0], output[kCount]);
}

}  // namespace

int main() try {
  byway::CommunicatorOptions options;
  const int size = byway::launchInfo().size;
  options.topology = "mesh:" + std::to_string(size) + "@100M,5";  // 100 MB/s a link, 5 us
  if (size < 4) {
    std::fprintf(stderr, "fused_relay: start it on four ranks: byway run -n 4 fused_relay\n");
    return 2;
  }
  const auto world = byway::Communicator::world(options);
  maximumOfOnePair(*world);
  gatherOfTwoPairs(*world);
} catch (const byway::Error& error) {
  std::fprintf(stderr, "%s: %s\n", byway::toString(error.code()), error.what());
  return 1;
}
