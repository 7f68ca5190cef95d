// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/demo/virtual_run.h"

#include <algorithm>
#include <memory>

#include "byway/comm/virtual_world.h"
#include "byway/planner/predict.h"
#include "byway/tools/demo/oracle.h"

namespace byway::tools {
namespace {

Segments segmentsOf(std::span<std::byte> memory) {
  const Buffer buffer{memory.data(), memory.size(), MemoryKind::Host, 0};
  return memory.empty() ? Segments() : Segments({&buffer, 1});
}

RunEvent runOne(const DemoCell& cell, const Topology& links, Way way,
                const std::shared_ptr<const VerifiedSchedule>& schedule,
                std::vector<std::unique_ptr<DemoBuffers>>& buffers) {
  const int call = way == Way::Direct ? 0 : 1;
  VirtualCall request;
  request.schedule = schedule;
  request.blockCounts.assign(schedule->schedule().shape.blocks.size(), cell.count);
  request.dtype = cell.dtype;
  for (auto& one : buffers) {
    one->prepare(call);
    request.inputs.push_back(segmentsOf(one->input()));
    request.outputs.push_back(segmentsOf(one->output()));
  }
  VirtualWorld world(links);
  RunEvent event;
  event.cell = cell.number;
  event.way = way;
  event.duration = world.run(request);
  for (int rank = 0; rank < cell.ranks; ++rank) {
    event.wrong += buffers[static_cast<std::size_t>(rank)]->countWrong(call);
    event.checked += buffers[static_cast<std::size_t>(rank)]->checked();
    if (!cell.hasMember(rank))
      event.helperStage = std::max(event.helperStage, world.stagePeak(rank));
  }
  return event;
}

}  // namespace

CellResult runVirtually(const DemoCell& cell, const DemoSettings& settings) {
  const Topology links = demoLinks(settings, cell.ranks);
  const PlanRequest request = requestOf(cell);
  const Plan made = plan(request, demoTopology(settings, cell.ranks));
  CellResult result;
  result.cell = cell;
  result.times = computeTimes(cell, settings);
  result.plan = {cell.number,         made.chosen->schedule().name, made.direct->schedule().name,
                 made.chosen->hash(), made.direct->hash(),          made.predicted,
                 made.directPredicted};
  std::vector<std::unique_ptr<DemoBuffers>> buffers;
  buffers.reserve(static_cast<std::size_t>(cell.ranks));
  for (int rank = 0; rank < cell.ranks; ++rank) {
    buffers.push_back(std::make_unique<DemoBuffers>(cell, rank));
  }
  // The cost model's time on these links, against which the engine's own is held.
  const auto modelled = [&](const VerifiedSchedule& schedule) {
    const std::vector<double> bytes(request.blockBytes.begin(), request.blockBytes.end());
    return predict(schedule.schedule(), schedule.graph(), links, bytes, request.partialWeight);
  };
  result.times.directComputed = modelled(*made.direct);
  result.times.chosenComputed = modelled(*made.chosen);
  result.direct.push_back(runOne(cell, links, Way::Direct, made.direct, buffers));
  result.chosen.push_back(runOne(cell, links, Way::Chosen, made.chosen, buffers));
  return result;
}

}  // namespace byway::tools
