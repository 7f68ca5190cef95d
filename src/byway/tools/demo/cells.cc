// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/demo/cells.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "byway/base/error.h"
#include "byway/schedule/loads.h"
#include "byway/tools/call_arguments.h"

namespace byway::tools {
namespace {

// What eight processes on two cores add to the links: wake-ups between a message and the next that
// needs it, time of a core for each message, sums. More than free cores need, so that stages are
// not shorter than a busy scheduler's delays (docs/demo.md).
constexpr Seconds kWakeUp = 500e-6;
constexpr Seconds kMessageCost = 30e-6;
constexpr double kReduceRate = 2e9;

void setUnlike(Topology& topology, const DemoCell& cell) {
  for (const UnlikeLink& link : cell.unlike) {
    topology.links[static_cast<std::size_t>(link.from) * static_cast<std::size_t>(cell.ranks) +
                   static_cast<std::size_t>(link.to)] *= link.part;
  }
}

}  // namespace

const char* toString(Scenario scenario) {
  switch (scenario) {
    case Scenario::Single:
      return "single";
    case Scenario::Fused:
      return "fused";
    case Scenario::Parallel:
      return "parallel";
    case Scenario::Flat:
      return "flat";
  }
  BYWAY_ASSERT(false);
}

bool DemoSettings::barsApply() const {
  const DemoSettings usual;
  return !quick && rate == usual.rate && latency == usual.latency &&
         directSeconds >= usual.directSeconds;
}

std::uint64_t DemoCell::bytes() const {
  return *std::max_element(counts.begin(), counts.end()) * sizeOf(dtype);
}

bool DemoCell::hasMember(int rank) const {
  return std::any_of(groups.begin(), groups.end(), [&](const Group& group) {
    return std::find(group.ranks.begin(), group.ranks.end(), rank) != group.ranks.end();
  });
}

std::string DemoCell::sizes() const {
  std::vector<int> all;
  for (const Group& group : groups) all.push_back(group.size());
  const bool alike = std::all_of(all.begin(), all.end(), [&](int n) { return n == all[0]; });
  return alike ? std::to_string(all[0]) : fmt::format("{}", fmt::join(all, "+"));
}

std::string DemoCell::scenarioText() const {
  std::string text = toString(scenario);
  if (scenario == Scenario::Parallel) {
    text += fmt::format(" {} live", groups.size());
    if (liveGroups > 0) text += ", stated";
  }
  for (const std::string& more : {countsName, linksName}) {
    if (!more.empty()) text += ", " + more;
  }
  return text;
}

std::string DemoCell::name() const {
  return fmt::format("{} A={} {} {} n={}", byway::toString(collective), sizes(), scenarioText(),
                     byway::toString(dtype), ranks);
}

std::string DemoCell::communicatorKey() const {
  std::string key = fmt::format("{}x{}", communicators(), ranks);
  for (const UnlikeLink& link : unlike) {
    key += fmt::format("-{}to{}at{}", link.from, link.to, link.part);
  }
  return key;
}

int DemoCell::communicators() const {
  return scenario == Scenario::Parallel ? static_cast<int>(groups.size()) : 1;
}

std::vector<std::size_t> DemoCell::groupsOf(int communicator) const {
  if (scenario == Scenario::Parallel) return {static_cast<std::size_t>(communicator)};
  std::vector<std::size_t> all(groups.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

Topology demoLinks(const DemoSettings& settings, const DemoCell& cell) {
  Topology topology = meshTopology(cell.ranks, settings.rate, settings.latency);
  setUnlike(topology, cell);
  return topology;
}

Topology demoTopology(const DemoSettings& settings, const DemoCell& cell) {
  Topology topology =
      meshTopology(cell.ranks, settings.rate, settings.latency + kWakeUp, kMessageCost);
  setUnlike(topology, cell);
  topology.reduce = kReduceRate;
  topology.name = fmt::format("mesh:{} paced to {:.6g} bytes/s, {:.6g} us", cell.ranks,
                              settings.rate, settings.latency * 1e6);
  if (!cell.linksName.empty()) topology.name += ", " + cell.linksName;
  return topology;
}

std::vector<PlanRequest> requestsOf(const DemoCell& cell) {
  std::vector<PlanRequest> requests;
  for (int i = 0; i < cell.communicators(); ++i) {
    PlanRequest request;
    request.collective = cell.collective;
    request.ranks = cell.ranks;
    std::vector<std::uint64_t> bytes;
    for (const std::size_t g : cell.groupsOf(i)) {
      request.groups.push_back(cell.groups[g]);
      bytes.push_back(cell.counts[g] * sizeOf(cell.dtype));
    }
    request.blockBytes = blockBytesOf(cell.collective, request.groups, bytes);
    request.partialWeight = partialWeightOf(cell.collective, cell.dtype, ReduceOp::Sum);
    request.liveGroups = std::max(1, cell.liveGroups);
    request.stageQuota = kStageQuota;
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace byway::tools
