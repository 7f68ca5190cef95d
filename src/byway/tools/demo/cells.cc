// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/demo/cells.h"

#include <algorithm>
#include <cmath>
#include <regex>
#include <span>

#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/tools/call_arguments.h"
#include "byway/tools/values.h"

namespace byway::tools {
namespace {

// What eight processes on two cores add to the links, measured with UCX 1.22 (docs/demo.md):
// wake-ups between a message and the next that needs it, time of a core for each message, sums.
// They keep the planner from cutting finer than the machine can follow, or too coarsely to overlap
// anything.
constexpr Seconds kWakeUp = 500e-6;
constexpr Seconds kMessageCost = 30e-6;
constexpr double kReduceRate = 2e9;

// One line of the list: collectives that share size and bar.
struct Family {
  int ranks, active;
  bool fused;
  DType dtype;
  Collective collective;
  double bar;
};

using C = Collective;
constexpr auto kF32 = DType::Float32;
constexpr auto kBf16 = DType::BFloat16;

constexpr Family kRegular[] = {
    {8, 2, false, kF32, C::AllReduce, 6.3},      {8, 2, false, kF32, C::AllGather, 6.3},
    {8, 2, false, kF32, C::ReduceScatter, 6.3},  {8, 2, false, kF32, C::AllToAll, 6.3},
    {8, 2, true, kF32, C::AllReduce, 3.8},       {8, 2, true, kF32, C::AllGather, 3.8},
    {8, 2, true, kF32, C::ReduceScatter, 3.8},   {8, 2, true, kF32, C::AllToAll, 3.8},
    {8, 4, true, kF32, C::AllReduce, 1.9},       {8, 4, true, kF32, C::AllGather, 1.9},
    {8, 4, true, kF32, C::ReduceScatter, 1.9},   {8, 4, true, kF32, C::AllToAll, 1.58},
    {8, 4, false, kF32, C::AllReduce, 2.75},     {8, 4, false, kF32, C::AllGather, 2.15},
    {8, 4, false, kF32, C::ReduceScatter, 2.15}, {8, 4, false, kF32, C::AllToAll, 2.1},
    {8, 4, false, kF32, C::Broadcast, 1.9},      {8, 4, false, kF32, C::Reduce, 1.9},
};

constexpr Family kFurther[] = {
    {8, 4, true, kBf16, C::AllReduce, 1.9},     {8, 4, true, kBf16, C::AllGather, 1.9},
    {8, 4, true, kBf16, C::ReduceScatter, 1.7}, {8, 2, false, kBf16, C::AllReduce, 0},
    {8, 2, false, kF32, C::Broadcast, 0},       {8, 2, false, kF32, C::Reduce, 0},
    {8, 2, false, kF32, C::Scatter, 0},         {8, 2, false, kF32, C::Gather, 0},
    {8, 2, true, kF32, C::Broadcast, 0},        {8, 2, true, kF32, C::Reduce, 0},
    {8, 4, false, kF32, C::Scatter, 0},         {8, 4, false, kF32, C::Gather, 0},
    {8, 4, true, kF32, C::Scatter, 0},          {8, 4, true, kF32, C::Gather, 0},
    {8, 4, true, kF32, C::Broadcast, 0},        {8, 4, true, kF32, C::Reduce, 0},
    {8, 3, false, kF32, C::AllReduce, 0},       {8, 3, false, kF32, C::AllGather, 0},
    {8, 3, false, kF32, C::ReduceScatter, 0},   {8, 3, false, kF32, C::AllToAll, 0},
    {8, 3, false, kF32, C::Broadcast, 0},       {8, 3, false, kF32, C::Reduce, 0},
    {6, 2, false, kF32, C::AllReduce, 0},       {6, 2, true, kF32, C::AllReduce, 0},
    {6, 3, false, kF32, C::AllGather, 0},       {6, 3, true, kF32, C::ReduceScatter, 0},
    {4, 2, false, kF32, C::AllReduce, 0},       {4, 2, true, kF32, C::AllToAll, 0},
    {4, 3, false, kF32, C::Broadcast, 0},       {8, 8, false, kF32, C::AllReduce, 0},
};

// Bytes of the unit that one direct link carries: 1 / direct of docs/schedules.md.
double unitsPerLink(Collective collective, int active) {
  switch (collective) {
    case Collective::AllReduce:
      return active / 2.0;
    case Collective::Broadcast:
    case Collective::Reduce:
      return active - 1.0;
    case Collective::AllGather:
    case Collective::ReduceScatter:
    case Collective::AllToAll:
    case Collective::Scatter:
    case Collective::Gather:
      return 1;
  }
  return 1;
}

void append(std::vector<DemoCell>& cells, std::span<const Family> families,
            const DemoSettings& settings) {
  constexpr double kQuickSeconds = 0.1;
  for (const Family& family : families) {
    DemoCell cell;
    cell.number = static_cast<int>(cells.size());
    cell.collective = family.collective;
    cell.active = family.active;
    cell.fused = family.fused;
    cell.ranks = family.ranks;
    cell.dtype = family.dtype;
    const Seconds seconds = settings.quick ? kQuickSeconds : settings.directSeconds;
    const double bytes = settings.rate * seconds * unitsPerLink(family.collective, family.active);
    cell.count =
        static_cast<std::uint64_t>(std::llround(bytes / static_cast<double>(sizeOf(cell.dtype))));
    cell.groups = regularGroups(family.ranks, family.active, family.fused);
    cell.bar = settings.barsApply() ? family.bar : 0;
    cells.push_back(std::move(cell));
  }
}

std::regex compiled(const std::string& expression) {
  try {
    return std::regex(expression, std::regex::extended);
  } catch (const std::regex_error&) {
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("--cells: \"{}\" is not a regular expression", expression));
  }
}

}  // namespace

bool DemoSettings::barsApply() const {
  const DemoSettings usual;
  return !quick && rate == usual.rate && latency == usual.latency &&
         directSeconds >= usual.directSeconds;
}

bool DemoCell::hasMember(int rank) const {
  return std::any_of(groups.begin(), groups.end(), [&](const Group& group) {
    return std::find(group.ranks.begin(), group.ranks.end(), rank) != group.ranks.end();
  });
}

std::string DemoCell::name() const {
  return fmt::format("{} A={} {} {} n={}", toString(collective), active, scenario(),
                     toString(dtype), ranks);
}

std::vector<DemoCell> demoCells(const DemoSettings& settings) {
  std::vector<DemoCell> cells;
  append(cells, kRegular, settings);
  if (settings.all) append(cells, kFurther, settings);
  std::string wanted = settings.cells;
  if (wanted.empty() && settings.quick) wanted = "^(allreduce|all-gather) A=2 single";
  if (wanted.empty()) return cells;
  const std::regex expression = compiled(wanted);
  std::vector<DemoCell> chosen;
  for (const DemoCell& cell : cells) {
    if (std::regex_search(cell.name(), expression)) chosen.push_back(cell);
  }
  if (!chosen.empty()) return chosen;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("--cells: \"{}\" matches none of the {} cells, such as \"{}\"", wanted,
                          cells.size(), cells[0].name()));
}

Topology demoLinks(const DemoSettings& settings, int ranks) {
  return meshTopology(ranks, settings.rate, settings.latency);
}

Topology demoTopology(const DemoSettings& settings, int ranks) {
  Topology topology = meshTopology(ranks, settings.rate, settings.latency + kWakeUp, kMessageCost);
  topology.reduce = kReduceRate;
  topology.name = fmt::format("mesh:{} paced to {:.6g} bytes/s, {:.6g} us", ranks, settings.rate,
                              settings.latency * 1e6);
  return topology;
}

PlanRequest requestOf(const DemoCell& cell) {
  PlanRequest request;
  request.collective = cell.collective;
  request.ranks = cell.ranks;
  request.groups = cell.groups;
  request.blockBytes = blockBytesOf(cell.collective, cell.groups, {cell.bytes()});
  request.partialWeight = partialWeightOf(cell.collective, cell.dtype, ReduceOp::Sum);
  return request;
}

}  // namespace byway::tools
