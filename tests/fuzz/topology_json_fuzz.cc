// SPDX-License-Identifier: BSD-3-Clause
// Topology files: whatever is read is written and read back the same, and serves for limits of
// small calls or is refused with a reason.
#include <cmath>
#include <numeric>

#include "byway/planner/limits.h"
#include "byway/planner/planner.h"
#include "byway/planner/topology.h"
#include "fuzz_target.h"

namespace byway {
namespace {

constexpr const char* kFile = "topology.json";
constexpr int kMostRanks = 5;  // of topologies that are planned for

void planOn(const Topology& topology) {
  PlanRequest request;
  request.collective = Collective::AllReduce;
  request.ranks = topology.ranks;
  Group all{std::vector<int>(static_cast<std::size_t>(topology.ranks)), 0};
  std::iota(all.ranks.begin(), all.ranks.end(), 0);
  if (all.ranks.size() > 2) all.ranks.pop_back();  // a helper
  request.groups = {all};
  request.blockBytes = {1 << 16};
  const Plan made = plan(request, topology);
  fuzz::require(made.chosen != nullptr && made.direct != nullptr, "a plan has its schedules");
  fuzz::require(!std::isnan(made.predicted) && made.predicted >= 0, "a predicted time is a time");
}

}  // namespace
}  // namespace byway

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace byway;
  Topology topology;
  try {
    topology = topologyFromJson(fuzz::textOf(data, size), kFile);
  } catch (const Error& error) {
    fuzz::requireGoodRefusal(error, kFile);
    return 0;
  }
  const Topology again = topologyFromJson(toJson(topology), kFile);
  fuzz::require(again.hash() == topology.hash(), "a topology survives its file");
  fuzz::require(toJson(again) == toJson(topology), "equal topologies have equal files");
  if (topology.ranks > kMostRanks) return 0;
  try {
    planOn(topology);
  } catch (const Error& error) {
    fuzz::require(
        error.code() == ErrorCode::InvalidArgument || error.code() == ErrorCode::Unsupported,
        "what cannot be planned is refused");
  }
  return 0;
}
