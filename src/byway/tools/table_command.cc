// SPDX-License-Identifier: BSD-3-Clause
// byway table: all collectives, group sizes, sizes and latencies on the virtual clock, to see that
// the chosen plan is never slower than direct, and from which size on it is faster.
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "byway/base/error.h"
#include "byway/comm/virtual_world.h"
#include "byway/planner/limits.h"
#include "byway/planner/planner.h"
#include "byway/schedule/loads.h"
#include "byway/tools/call_arguments.h"
#include "byway/tools/command.h"
#include "byway/tools/files.h"
#include "byway/tools/option_checks.h"
#include "byway/tools/text_table.h"
#include "byway/tools/values.h"

namespace byway::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostRanks = 64;
constexpr double kTolerance = 1e-9;  // of times added up in another order

struct TableOptions {
  std::string rate = "50G", latency = "0,10,50", sizes = "4Ki-1Gi", active = "2,3,4", collective;
  std::string dtype = "float32", json;
  int ranks = 8;
};

struct Point {
  std::uint64_t bytes = 0;
  Seconds direct = 0, chosen = 0;
  std::string route;
  bool samePlan = true;
  double speedup() const { return direct / chosen; }
};

// One collective in one scenario at one latency, over all sizes.
struct Series {
  Collective collective;
  int active = 2;
  bool fused = false;
  double latency = 0;  // us
  std::vector<Group> groups;
  double limit = 1;
  std::vector<Point> points;

  bool slower() const {
    return std::any_of(points.begin(), points.end(),
                       [](const Point& p) { return p.speedup() < 1 - kTolerance; });
  }
  // The first size from which on every size is relayed; nullptr: the last is not.
  const Point* crossover() const {
    const Point* first = nullptr;
    for (auto p = points.rbegin(); p != points.rend() && !p->samePlan; ++p) first = &*p;
    return first;
  }
};

PlanRequest requestFor(const Series& series, std::uint64_t bytes, DType dtype, int ranks) {
  PlanRequest request;
  request.collective = series.collective;
  request.ranks = ranks;
  request.groups = series.groups;
  request.blockBytes = blockBytesOf(series.collective, series.groups, {bytes});
  request.partialWeight = partialWeightOf(series.collective, dtype, ReduceOp::Sum);
  request.stageQuota = kStageQuota;
  return request;
}

Seconds timeOf(const Topology& topology, const std::shared_ptr<const VerifiedSchedule>& schedule,
               std::uint64_t bytes, DType dtype) {
  VirtualCall call;
  call.schedule = schedule;
  call.blockCounts.assign(schedule->schedule().shape.blocks.size(), bytes / sizeOf(dtype));
  call.dtype = dtype;
  return VirtualWorld(topology).run(call);
}

Point measure(const Series& series, std::uint64_t bytes, DType dtype, const Topology& topology) {
  const Plan made = plan(requestFor(series, bytes, dtype, topology.ranks), topology);
  Point point;
  point.bytes = bytes;
  point.route = made.chosen->schedule().name;
  point.samePlan = !made.relayed();
  point.direct = timeOf(topology, made.direct, bytes, dtype);
  point.chosen = point.samePlan ? point.direct : timeOf(topology, made.chosen, bytes, dtype);
  return point;
}

double limitOf(const Series& series, const Topology& topology) {
  LimitRequest request;
  request.collective = series.collective;
  request.groups = series.groups;
  const double limit = fluidLimit(request, topology);
  request.direct = true;
  return fluidLimit(request, topology) / limit;
}

std::vector<Series> listSeries(const TableOptions& options) {
  std::vector<Collective> collectives{
#define BYWAY_X(id, name, reducing) Collective::id,
      BYWAY_COLLECTIVES(BYWAY_X)
#undef BYWAY_X
  };
  if (!options.collective.empty()) collectives = {collectiveNamed(options.collective)};
  std::vector<Series> all;
  for (const Collective collective : collectives) {
    for (const double a : parseNumbers(options.active, "--active")) {
      const int active = static_cast<int>(a);
      if (active < 2 || active > options.ranks) {
        throw Error(ErrorCode::InvalidArgument,
                    fmt::format("--active: groups of {} among {} ranks", a, options.ranks));
      }
      for (const bool fused : {false, true}) {
        auto groups = regularGroups(options.ranks, active, fused);
        if (fused && groups.size() < 2) continue;
        for (const double latency : parseNumbers(options.latency, "--latency")) {
          all.push_back({collective, active, fused, latency, groups, 1, {}});
        }
      }
    }
  }
  return all;
}

std::string speedupAt(const Series& series, std::size_t index) {
  return fmt::format("{:.3f}", series.points[index].speedup());
}

void print(const std::vector<Series>& all) {
  const auto& sizes = all.front().points;
  const std::set shown{std::size_t{0}, sizes.size() / 2, sizes.size() - 1};
  std::vector<std::string> header{"collective", "A", "scenario", "latency us", "relay from"};
  for (const auto index : shown) header.push_back(bytesText(sizes[index].bytes));
  header.insert(header.end(), {"limit", "least", "route of the largest"});
  TextTable table(std::move(header));
  for (const Series& series : all) {
    double least = series.points[0].speedup();
    for (const Point& point : series.points) least = std::min(least, point.speedup());
    const Point* crossover = series.crossover();
    std::vector<std::string> row{toString(series.collective), std::to_string(series.active),
                                 series.fused ? "fused" : "single",
                                 fmt::format("{:g}", series.latency),
                                 crossover == nullptr ? "-" : bytesText(crossover->bytes)};
    for (const auto index : shown) row.push_back(speedupAt(series, index));
    row.insert(row.end(), {fmt::format("{:.3f}", series.limit), fmt::format("{:.3f}", least),
                           series.points.back().route});
    table.add(std::move(row), series.slower() ? Colour::Bad : Colour::None);
  }
  table.print();
}

Json rowsOf(const Series& series, const TableOptions& options) {
  Json groups = Json::array();
  for (const Group& group : series.groups) groups.push_back(group.ranks);
  Json rows = Json::array();
  for (const Point& p : series.points) {
    rows.push_back({{"collective", toString(series.collective)},
                    {"active", series.active},
                    {"scenario", series.fused ? "fused" : "single"},
                    {"groups", groups},
                    {"ranks", options.ranks},
                    {"dtype", options.dtype},
                    {"bytes", p.bytes},
                    {"latency_s", series.latency / 1e6},
                    {"direct_s", p.direct},
                    {"chosen_s", p.chosen},
                    {"speedup", p.speedup()},
                    {"limit", series.limit},
                    {"of_limit", p.speedup() / series.limit},
                    {"route", p.route},
                    {"same_plan", p.samePlan},
                    {"peer", nullptr},
                    {"peer_s", nullptr},
                    {"samples", 1},
                    {"interval", {p.speedup(), p.speedup()}},
                    {"verified", false}});  // no bytes stand behind it
  }
  return rows;
}

void writeJson(const std::vector<Series>& all, const TableOptions& options) {
  if (options.json.empty()) return;
  Json document{{"byway", "results"},
                {"version", 1},
                {"command", "table"},
                {"clock", "virtual"},
                {"rate_Bps", parseRate(options.rate, "--rate")},
                {"rows", Json::array()}};
  for (const Series& series : all) {
    for (Json& row : rowsOf(series, options)) document["rows"].push_back(std::move(row));
  }
  writeFileAtomically(options.json, document.dump(1) + "\n");
}

int conclude(const std::vector<Series>& all) {
  std::size_t points = 0, relayed = 0, slower = 0;
  for (const Series& series : all) {
    for (const Point& point : series.points) {
      ++points;
      relayed += point.samePlan ? 0 : 1;
      if (point.speedup() >= 1 - kTolerance) continue;
      ++slower;
      fmt::print("slower: {} A={} {} at {}, {:g} us: {:.4f} ({})\n", toString(series.collective),
                 series.active, series.fused ? "fused" : "single", bytesText(point.bytes),
                 series.latency, point.speedup(), point.route);
    }
  }
  fmt::print("\n{} points, {} relayed, {} slower than direct\n", points, relayed, slower);
  return slower == 0 ? kOk : kFailed;
}

int showTable(const TableOptions& options) {
  const double rate = parseRate(options.rate, "--rate");
  const DType dtype = dtypeNamed(options.dtype);
  std::vector<std::uint64_t> sizes = parseSizes(options.sizes, "--sizes");
  for (std::uint64_t& size : sizes) size -= size % sizeOf(dtype);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) {
    throw Error(ErrorCode::InvalidArgument, "--sizes: a size holds no element");
  }
  auto all = listSeries(options);
  if (!options.json.empty()) requireWritable(options.json);
  fmt::print("Virtual clock, {} ranks, {} bytes/s for each ordered pair, {}.\n", options.ranks,
             options.rate, options.dtype);
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Series& series = all[i];
    if (terminal) fmt::print(stderr, "\r\033[K[{}/{}]", i, all.size());
    const Topology topology = parseTopology(
        fmt::format("mesh:{}@{},{}", options.ranks, rate, series.latency), options.ranks);
    const bool known =
        i > 0 && all[i - 1].groups == series.groups && all[i - 1].collective == series.collective;
    series.limit = known ? all[i - 1].limit : limitOf(series, topology);
    for (const auto size : sizes) {
      series.points.push_back(measure(series, size, dtype, topology));
    }
  }
  if (terminal) fmt::print(stderr, "\r\033[K");
  print(all);
  writeJson(all, options);
  return conclude(all);
}

}  // namespace

void addTableCommand(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand(
      "table", "Sweep collectives, sizes and latencies on a virtual clock: chosen against direct");
  auto options = std::make_shared<TableOptions>();
  sub->add_option("--sizes", options->sizes,
                  "From-to in steps of four, or a list; the table shows the first, the middle and "
                  "the last, the JSON file all")
      ->capture_default_str();
  sub->add_option("--latency", options->latency, "Latencies of the links in microseconds")
      ->capture_default_str();
  sub->add_option("--rate", options->rate, "Bytes/s of every link")->capture_default_str();
  sub->add_option("--active", options->active, "Group sizes")->capture_default_str();
  sub->add_option("--collective", options->collective, "Only this one");
  sub->add_option("--ranks", options->ranks, "Ranks in all")
      ->capture_default_str()
      ->check(wholeNumber(2, kMostRanks));
  sub->add_option("--dtype", options->dtype, "Element type")->capture_default_str();
  sub->add_option("--json", options->json, "Write all points to FILE");
  sub->callback([&action, options] { action = [options] { return showTable(*options); }; });
}

}  // namespace byway::tools
