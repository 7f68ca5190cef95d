// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/bench/memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "byway/base/types.h"
#include "byway/schedule/loads.h"
#include "byway/tools/call_arguments.h"

namespace byway::tools {
namespace {

std::uint64_t blocksBytes(const std::vector<int>& blocks, const std::vector<std::uint64_t>& bytes) {
  std::uint64_t sum = 0;
  for (const int b : blocks) sum += bytes[static_cast<std::size_t>(b)];
  return sum;
}

std::uint64_t stageBytes(const VerifiedSchedule& schedule, const PlanRequest& request) {
  const std::vector<double> sizes(request.blockBytes.begin(), request.blockBytes.end());
  const double need = stageNeed(schedule.schedule(), sizes, request.partialWeight).any;
  const auto most = std::min(need, static_cast<double>(kStageQuota));
  const auto& slots = schedule.schedule().slots;
  const auto ranks = std::count_if(slots.begin(), slots.end(), [](auto n) { return n > 0; });
  return static_cast<std::uint64_t>(most) * static_cast<std::uint64_t>(ranks);
}

// A file that holds one number; the largest number where there is none, or "max".
std::uint64_t numberIn(const std::string& path) {
  std::ifstream in(path);
  std::uint64_t value = 0;
  return in >> value ? value : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace

std::uint64_t bufferBytes(const DemoCell& cell) {
  const Shape shape = makeShape(cell.collective, cell.ranks, cell.groups);
  std::vector<std::uint64_t> units;
  for (const std::uint64_t count : cell.counts) units.push_back(count * sizeOf(cell.dtype));
  const auto blocks = blockBytesOf(cell.collective, cell.groups, units);
  std::uint64_t sum = 0;
  for (int rank = 0; rank < cell.ranks; ++rank) {
    sum += blocksBytes(inputBlocks(shape, rank), blocks);
    sum += blocksBytes(outputBlocks(shape, rank), blocks);
  }
  return sum;
}

std::uint64_t memoryNeed(const DemoCell& cell, const PlannedCell& planned) {
  std::uint64_t sum = bufferBytes(cell);
  const auto requests = requestsOf(cell);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    sum += stageBytes(*planned.direct[i], requests[i]);
    sum += stageBytes(*planned.chosen[i], requests[i]);
  }
  return sum;
}

std::uint64_t availableMemory() {
  std::uint64_t available = std::numeric_limits<std::uint64_t>::max();
  std::ifstream in("/proc/meminfo");
  std::string word;
  while (in >> word) {
    std::uint64_t kilobytes = 0;
    if (word == "MemAvailable:" && in >> kilobytes) available = kilobytes << 10;
  }
  const std::uint64_t most = numberIn("/sys/fs/cgroup/memory.max");
  const std::uint64_t used = numberIn("/sys/fs/cgroup/memory.current");
  if (most != std::numeric_limits<std::uint64_t>::max() && used <= most) {
    available = std::min(available, most - used);
  }
  return available;
}

}  // namespace byway::tools
