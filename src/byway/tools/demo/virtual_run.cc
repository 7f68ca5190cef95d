// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/demo/virtual_run.h"

#include <algorithm>

#include "byway/comm/virtual_world.h"
#include "byway/planner/limits.h"
#include "byway/planner/predict.h"
#include "byway/schedule/loads.h"
#include "byway/tools/demo/oracle.h"

namespace byway::tools {
namespace {

using Buffers = std::vector<std::unique_ptr<DemoBuffers>>;

Segments segmentsOf(std::span<std::byte> memory) {
  const Buffer buffer{memory.data(), memory.size(), MemoryKind::Host, 0};
  return memory.empty() ? Segments() : Segments({&buffer, 1});
}

// One for each communicator; without buffers no memory is moved.
std::vector<VirtualCall> callsOf(const DemoCell& cell, const Schedules& schedules,
                                 const Buffers& buffers) {
  std::vector<VirtualCall> calls;
  for (int i = 0; i < cell.communicators(); ++i) {
    VirtualCall& call = calls.emplace_back();
    call.schedule = schedules[static_cast<std::size_t>(i)];
    call.dtype = cell.dtype;
    call.communicator = i;
    const Shape& shape = call.schedule->schedule().shape;
    for (const std::size_t g : cell.groupsOf(i)) {
      const auto blocks = blocksPerGroup(cell.collective, cell.groups[g].size());
      call.blockCounts.insert(call.blockCounts.end(), static_cast<std::size_t>(blocks),
                              cell.counts[g]);
    }
    for (std::size_t rank = 0; rank < buffers.size(); ++rank) {
      const bool isMember = membershipOf(shape, static_cast<int>(rank)).group >= 0;
      call.inputs.push_back(isMember ? segmentsOf(buffers[rank]->input()) : Segments());
      call.outputs.push_back(isMember ? segmentsOf(buffers[rank]->output()) : Segments());
    }
  }
  return calls;
}

Seconds last(const std::vector<Seconds>& times) {
  return *std::max_element(times.begin(), times.end());
}

RunEvent runOne(const DemoCell& cell, const Topology& links, Way way, const Schedules& schedules,
                Buffers& buffers) {
  const int call = way == Way::Direct ? 0 : 1;
  for (auto& one : buffers) one->prepare(call);
  VirtualWorld world(links, kStageQuota, cell.communicators());
  RunEvent event;
  event.cell = cell.number;
  event.way = way;
  event.duration = last(world.runAll(callsOf(cell, schedules, buffers)));
  for (int rank = 0; rank < cell.ranks; ++rank) {
    event.wrong += buffers[static_cast<std::size_t>(rank)]->countWrong(call);
    event.checked += buffers[static_cast<std::size_t>(rank)]->checked();
    if (!cell.hasMember(rank))
      event.helperStage = std::max(event.helperStage, world.stagePeak(rank));
  }
  return event;
}

}  // namespace

PlannedCell planCell(const DemoCell& cell, const Topology& topology) {
  PlannedCell planned;
  for (const PlanRequest& request : requestsOf(cell)) {
    const Plan made = plan(request, topology);
    planned.direct.push_back(made.direct);
    planned.chosen.push_back(made.chosen);
    planned.relayed = planned.relayed || made.relayed();
    planned.predicted = made.predicted;
    planned.directPredicted = made.directPredicted;
    for (const ConsideredCandidate& one : made.considered) {
      if (one.direct || one.predicted <= 0) continue;
      planned.gain = std::max(planned.gain, made.directPredicted / one.predicted);
    }
  }
  return planned;
}

PlannedCell planCell(const DemoCell& cell, const DemoSettings& settings) {
  return planCell(cell, demoTopology(settings, cell));
}

PlanEvent planEventOf(const DemoCell& cell, const PlannedCell& planned) {
  const VerifiedSchedule& chosen = *planned.chosen.front();
  const VerifiedSchedule& direct = *planned.direct.front();
  return {cell.number,   chosen.schedule().name, direct.schedule().name, chosen.hash(),
          direct.hash(), planned.predicted,      planned.directPredicted};
}

CellTimes computeTimes(const DemoCell& cell, const Topology& links, const PlannedCell& planned) {
  LimitRequest limit;
  limit.collective = cell.collective;
  limit.groups = cell.groups;
  const auto bytes = static_cast<double>(cell.bytes());
  for (const std::uint64_t count : cell.counts) {
    limit.counts.push_back(static_cast<double>(count * sizeOf(cell.dtype)) / bytes);
  }
  CellTimes times;
  times.limit = bytes * fluidLimit(limit, links);
  limit.direct = true;
  times.directLink = bytes * fluidLimit(limit, links);
  times.directComputed = virtualTime(cell, links, planned.direct);
  times.chosenComputed =
      planned.relayed ? virtualTime(cell, links, planned.chosen) : times.directComputed;
  return times;
}

Seconds virtualTime(const DemoCell& cell, const Topology& links, const Schedules& schedules) {
  return last(
      VirtualWorld(links, kStageQuota, cell.communicators()).runAll(callsOf(cell, schedules, {})));
}

CellResult runVirtually(const DemoCell& cell, const Topology& links, const PlannedCell& planned) {
  CellResult result;
  result.cell = cell;
  result.times = computeTimes(cell, links, planned);
  result.plan = planEventOf(cell, planned);
  Buffers buffers;
  for (int rank = 0; rank < cell.ranks; ++rank) {
    buffers.push_back(std::make_unique<DemoBuffers>(cell, rank));
  }
  result.direct.push_back(runOne(cell, links, Way::Direct, planned.direct, buffers));
  result.chosen.push_back(runOne(cell, links, Way::Chosen, planned.chosen, buffers));
  return result;
}

CellResult runVirtually(const DemoCell& cell, const DemoSettings& settings) {
  const Topology links = demoLinks(settings, cell);
  const PlannedCell planned = planCell(cell, settings);
  CellResult result = runVirtually(cell, links, planned);
  if (cell.communicators() > 1) return result;
  // The cost model's time on these links, against which the engine's own is held.
  const PlanRequest request = requestsOf(cell).front();
  const std::vector<double> bytes(request.blockBytes.begin(), request.blockBytes.end());
  const auto modelled = [&](const VerifiedSchedule& schedule) {
    return predict(schedule.schedule(), schedule.graph(), links, bytes, request.partialWeight);
  };
  result.times.directComputed = modelled(*planned.direct.front());
  result.times.chosenComputed = modelled(*planned.chosen.front());
  return result;
}

}  // namespace byway::tools
