// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/bench/bench_cells.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "byway/base/error.h"
#include "byway/tools/bench/memory.h"
#include "byway/tools/values.h"

namespace byway::tools {
namespace {

constexpr int kProductionMembers = 2;
const std::vector<double> kProductionRatios[] = {{0.755, 0.872, 1, 0.883},
                                                 {0.980, 1, 0.981, 0.985}};
// Stage memory of both ways, which does not grow with the cell, and then some.
constexpr double kShareForBuffers = 0.8;

[[noreturn]] void refuse(const std::string& reason) {
  throw Error(ErrorCode::InvalidArgument, reason);
}

std::vector<Group> groupsFor(const BenchSettings& settings, int active) {
  if (active < 2 || active > settings.ranks) {
    refuse(fmt::format("--active: groups of {} among {} ranks", active, settings.ranks));
  }
  const bool several =
      settings.scenario == Scenario::Fused || settings.scenario == Scenario::Parallel;
  auto groups = regularGroups(settings.ranks, active, several);
  if (!several || settings.groups == 0) return groups;
  if (groups.size() < static_cast<std::size_t>(settings.groups)) {
    refuse(fmt::format("--groups: {} groups of {} do not fit {} ranks", settings.groups, active,
                       settings.ranks));
  }
  groups.resize(static_cast<std::size_t>(settings.groups));
  return groups;
}

std::string ratioText(const std::vector<double>& ratios) {
  return fmt::format("{:g}", fmt::join(ratios, ":"));
}

// The largest group has `bytes`.
void setCounts(DemoCell& cell, double bytes, const std::vector<double>& ratios) {
  const double elements = bytes / static_cast<double>(sizeOf(cell.dtype));
  if (ratios.empty()) {
    cell.counts.assign(cell.groups.size(), static_cast<std::uint64_t>(elements));
  } else {
    const double largest = *std::max_element(ratios.begin(), ratios.end());
    cell.counts.clear();
    for (const double ratio : ratios) {
      cell.counts.push_back(static_cast<std::uint64_t>(elements * ratio / largest));
    }
    cell.countsName = ratioText(ratios);
  }
  if (*std::min_element(cell.counts.begin(), cell.counts.end()) == 0) {
    refuse(fmt::format("--sizes: {} hold no element of {}",
                       bytesText(static_cast<std::uint64_t>(bytes)), toString(cell.dtype)));
  }
}

DemoCell cellFor(const BenchSettings& settings, Collective collective, int active) {
  DemoCell cell;
  cell.collective = collective;
  cell.scenario = settings.scenario;
  cell.ranks = settings.ranks;
  cell.dtype = settings.dtype;
  cell.groups = groupsFor(settings, active);
  if (settings.scenario == Scenario::Parallel) {
    cell.liveGroups = settings.live < 0 ? static_cast<int>(cell.groups.size()) : settings.live;
  }
  return cell;
}

std::vector<DemoCell> swept(const BenchSettings& settings) {
  std::vector<DemoCell> cells;
  for (const Collective collective : settings.collectives) {
    for (const int active : settings.active) {
      const DemoCell cell = cellFor(settings, collective, active);
      if (settings.scenario == Scenario::Fused && cell.groups.size() < 2) continue;
      if (!settings.ratios.empty() && settings.ratios.size() != cell.groups.size()) {
        refuse(fmt::format("--counts: {} counts for {} groups of {}", settings.ratios.size(),
                           cell.groups.size(), active));
      }
      for (const std::uint64_t size : settings.sizes) {
        cells.push_back(cell);
        setCounts(cells.back(), static_cast<double>(size), settings.ratios);
      }
    }
  }
  return cells;
}

// How often the unit of a collective fits the larger buffer of a member.
double unitsOf(Collective collective, int members) {
  return collective == Collective::AllReduce || collective == Collective::Broadcast ||
                 collective == Collective::Reduce
             ? 1
             : members;
}

std::vector<DemoCell> production(const BenchSettings& settings) {
  if (settings.scenario != Scenario::Fused || settings.ranks != 4 * kProductionMembers) {
    refuse("--shape: the production shapes are four groups of two of 8 ranks, fused");
  }
  std::vector<DemoCell> cells;
  for (const Collective collective : settings.collectives) {
    for (const auto& ratios : kProductionRatios) {
      DemoCell& cell = cells.emplace_back(cellFor(settings, collective, kProductionMembers));
      const double full = kProductionBytes / unitsOf(collective, kProductionMembers);
      setCounts(cell, full, ratios);
      const double fits = kShareForBuffers * static_cast<double>(settings.memory) /
                          static_cast<double>(bufferBytes(cell));
      if (!settings.isVirtual && fits < 1) setCounts(cell, full * fits, ratios);
    }
  }
  return cells;
}

}  // namespace

std::vector<DemoCell> benchCells(const BenchSettings& settings) {
  auto cells = settings.production ? production(settings) : swept(settings);
  if (cells.empty()) {
    refuse(fmt::format("--active: no two groups fit {} ranks, so there is nothing to fuse",
                       settings.ranks));
  }
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i].number = static_cast<int>(i);
  return cells;
}

std::string keyOf(const DemoCell& cell) {
  return fmt::format("{} groups={} counts={} live={}", cell.name(), groupsText(cell.groups),
                     fmt::join(cell.counts, ","), cell.liveGroups);
}

}  // namespace byway::tools
