// SPDX-License-Identifier: BSD-3-Clause
// The cells of `byway demo`, and with --all of every kind of call that is relayed.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <regex>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "byway/base/error.h"
#include "byway/tools/demo/cells.h"

namespace byway::tools {
namespace {

using C = Collective;
constexpr auto kF32 = DType::Float32;
constexpr auto kBf16 = DType::BFloat16;

// Collectives on groups of one size on a uniform mesh.
struct Family {
  int ranks, active;
  bool fused;
  DType dtype;
  Collective collective;
  double bar;
};

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

constexpr Collective kFour[] = {C::AllReduce, C::AllGather, C::ReduceScatter, C::AllToAll};

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

class List {
 public:
  explicit List(const DemoSettings& settings) : settings_(settings) {}

  // Groups of the first ranks, one after another.
  DemoCell& add(Collective collective, Scenario scenario, int ranks, std::span<const int> sizes) {
    DemoCell& cell = cells_.emplace_back();
    cell.number = static_cast<int>(cells_.size()) - 1;
    cell.collective = collective;
    cell.scenario = scenario;
    cell.ranks = ranks;
    int next = 0;
    for (const int size : sizes) {
      Group& group = cell.groups.emplace_back();
      while (group.size() < size) group.ranks.push_back(next++);
    }
    setCounts(cell, {});
    return cell;
  }
  DemoCell& add(Collective collective, Scenario scenario, int ranks,
                std::initializer_list<int> sizes) {
    return add(collective, scenario, ranks, std::span(sizes.begin(), sizes.size()));
  }

  // So much that the group that takes longest needs the time that was asked for, directly. `ratio`
  // has a number for each group; empty: all have the same count.
  void setCounts(DemoCell& cell, const std::vector<double>& ratio) const {
    constexpr double kQuickSeconds = 0.1;
    const double bytes =
        settings_.rate * (settings_.quick ? kQuickSeconds : settings_.directSeconds);
    const double most = ratio.empty() ? 1 : *std::max_element(ratio.begin(), ratio.end());
    double unit = 0;  // bytes of the largest count
    for (std::size_t g = 0; g < cell.groups.size(); ++g) {
      const double part = ratio.empty() ? 1 : ratio[g] / most;
      const double own = bytes * unitsPerLink(cell.collective, cell.groups[g].size()) / part;
      unit = g == 0 ? own : std::min(unit, own);
    }
    cell.counts.clear();
    for (std::size_t g = 0; g < cell.groups.size(); ++g) {
      const double part = ratio.empty() ? 1 : ratio[g] / most;
      cell.counts.push_back(static_cast<std::uint64_t>(
          std::llround(unit * part / static_cast<double>(sizeOf(cell.dtype)))));
    }
    if (!ratio.empty()) cell.countsName = fmt::format("{}", fmt::join(ratio, ":"));
  }

  void addFamilies(std::span<const Family> families) {
    for (const Family& family : families) {
      const int groups = family.fused ? family.ranks / family.active : 1;
      DemoCell& cell =
          add(family.collective, family.fused ? Scenario::Fused : Scenario::Single, family.ranks,
              std::vector<int>(static_cast<std::size_t>(groups), family.active));
      cell.dtype = family.dtype;
      setCounts(cell, {});
      cell.bar = bar(family.bar);
    }
  }

  // Groups of unlike size, ranks that no group has, unlike counts: routes come from the packing LP.
  void addIrregular() {
    constexpr double kOfLimit = 0.9;
    for (const Collective c : kFour) {
      add(c, Scenario::Fused, kDemoRanks, {3, 3}).barOfLimit = bar(kOfLimit);
      add(c, Scenario::Fused, kDemoRanks, {2, 3}).barOfLimit = bar(kOfLimit);
      add(c, Scenario::Single, 7, {5}).barOfLimit = bar(kOfLimit);
    }
    // Recorded sizes of an optimizer's synchronisation.
    for (const Collective c : {C::AllGather, C::AllToAll, C::AllReduce}) {
      DemoCell& cell = add(c, Scenario::Fused, kDemoRanks, {2, 2, 2, 2});
      setCounts(cell, {634, 560, 553, 479});
      cell.bar = bar(4.3);
    }
  }

  // Three of the lopsided meshes whose whole list is tested on the virtual clock
  // (comm/packing_test.cc).
  void addLopsided() {
    constexpr double kSlow = 0.25, kOfLimit = 0.9, kOfLimitOfSums = 0.88;
    DemoCell& slow = add(C::AllReduce, Scenario::Single, kDemoRanks, {4});
    slow.unlike = {{0, 1, kSlow}, {1, 0, kSlow}};
    slow.linksName = "link 0-1 a quarter";
    slow.barOfLimit = bar(kOfLimitOfSums);
    DemoCell& missing = add(C::AllGather, Scenario::Fused, kDemoRanks, {4, 4});
    missing.unlike = {{0, 5, 0}, {5, 0, 0}};
    missing.linksName = "no link 0-5";
    missing.barOfLimit = bar(kOfLimit);
    DemoCell& oneWay = add(C::AllToAll, Scenario::Single, kDemoRanks, {2});
    oneWay.unlike = {{0, 1, kSlow}};
    oneWay.linksName = "link 0>1 a quarter";
    oneWay.barOfLimit = bar(kOfLimit);
  }

  void addParallel() {
    struct Kind {
      std::size_t live;
      bool stated;
      double bar;
    };
    constexpr Kind kKinds[] = {{4, false, 3.2}, {4, true, 3.6}, {1, false, 3.8}, {1, true, 6}};
    constexpr int kPairs[] = {2, 2, 2, 2};
    for (const Collective c : kFour) {
      for (const Kind& kind : kKinds) {
        DemoCell& cell = add(c, Scenario::Parallel, kDemoRanks, std::span(kPairs).first(kind.live));
        cell.liveGroups = kind.stated ? static_cast<int>(kind.live) : 0;
        cell.bar = bar(kind.bar);
      }
    }
  }

  std::vector<DemoCell> take() { return std::move(cells_); }

 private:
  double bar(double value) const { return settings_.barsApply() ? value : 0; }

  const DemoSettings& settings_;
  std::vector<DemoCell> cells_;
};

std::regex compiled(const std::string& expression) {
  try {
    return std::regex(expression, std::regex::extended);
  } catch (const std::regex_error&) {
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("--cells: \"{}\" is not a regular expression", expression));
  }
}

}  // namespace

std::vector<DemoCell> demoCells(const DemoSettings& settings) {
  List list(settings);
  list.addFamilies(kRegular);
  if (settings.all) {
    list.addFamilies(kFurther);
    list.addIrregular();
    list.addLopsided();
    list.addParallel();
  }
  const std::vector<DemoCell> cells = list.take();
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

}  // namespace byway::tools
