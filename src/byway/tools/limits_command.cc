// SPDX-License-Identifier: BSD-3-Clause
// byway limits: the least time that any schedule needs, by the flow LP.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "byway/base/error.h"
#include "byway/planner/limits.h"
#include "byway/tools/call_arguments.h"
#include "byway/tools/command.h"
#include "byway/tools/files.h"
#include "byway/tools/text_table.h"
#include "byway/tools/values.h"

namespace byway::tools {
namespace {

using Json = nlohmann::ordered_json;

struct LimitsOptions {
  CallArguments call;
  std::string json;
  bool all = false;
};

struct LimitRow {
  Collective collective;
  std::string scenario;
  std::vector<Group> groups;
  std::uint64_t bytes = 0;  // of the largest group
  std::optional<Seconds> direct;
  Seconds limit = 0;
};

// Nothing where links between members do not suffice; that links of all ranks do is known.
std::optional<double> directLimit(LimitRequest request, const Topology& topology) {
  request.direct = true;
  try {
    return fluidLimit(request, topology);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::InvalidArgument) throw;
    return std::nullopt;
  }
}

LimitRow limitRow(Collective collective, const std::vector<Group>& groups,
                  const std::vector<std::uint64_t>& bytes, const Topology& topology) {
  LimitRow row{collective, groups.size() == 1 ? "single" : "fused", groups, 0, {}, 0};
  row.bytes = *std::max_element(bytes.begin(), bytes.end());
  LimitRequest request;
  request.collective = collective;
  request.groups = groups;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto mine = bytes[bytes.size() == 1 ? 0 : g];
    request.counts.push_back(
        row.bytes == 0 ? 1 : static_cast<double>(mine) / static_cast<double>(row.bytes));
  }
  const auto unit = static_cast<double>(row.bytes);
  row.limit = unit * fluidLimit(request, topology);
  if (const auto direct = directLimit(request, topology)) row.direct = unit * *direct;
  return row;
}

// Of all collectives, or of `only`.
std::vector<LimitRow> regularRows(const DescribedCall& call, std::optional<Collective> only) {
  constexpr std::array kActive{2, 3, 4};
  const int n = call.topology.ranks;
  std::vector<LimitRow> rows;
#define BYWAY_X(id, name, reducing) Collective::id,
  for (const Collective collective : {BYWAY_COLLECTIVES(BYWAY_X)}) {
#undef BYWAY_X
    if (only && collective != *only) continue;
    for (const int active : kActive) {
      for (const bool fused : {false, true}) {
        const auto groups = regularGroups(n, active, fused);
        if (active > n || (fused && groups.size() < 2)) continue;
        rows.push_back(limitRow(collective, groups, {call.bytes[0]}, call.topology));
      }
    }
  }
  return rows;
}

std::optional<double> speedup(const LimitRow& row) {
  if (!row.direct) return std::nullopt;
  return row.limit > 0 ? *row.direct / row.limit : 1;
}

std::string fixed(std::optional<double> value) {
  return value ? fmt::format("{:.4f}", *value) : "-";
}

Json orNull(std::optional<double> value) { return value ? Json(*value) : Json(); }

void print(const std::vector<LimitRow>& rows, const Topology& topology) {
  fmt::print(
      "Limits on {} ({} ranks): no schedule is faster. Direct: links between members only.\n",
      topology.name, topology.ranks);
  constexpr double kMilli = 1e3;
  TextTable table(
      {"collective", "A", "scenario", "groups", "size", "direct ms", "limit ms", "speed-up"});
  for (const LimitRow& row : rows) {
    table.add({toString(row.collective), std::to_string(row.groups[0].size()), row.scenario,
               groupsText(row.groups), bytesText(row.bytes),
               row.direct ? fixed(*row.direct * kMilli) : "-", fixed(row.limit * kMilli),
               fixed(speedup(row))});
  }
  table.print();
}

std::string toJson(const std::vector<LimitRow>& rows, const Topology& topology) {
  Json document{
      {"byway", "limits"}, {"version", 1}, {"topology", topology.name}, {"rows", Json::array()}};
  for (const LimitRow& row : rows) {
    Json groups = Json::array();
    for (const Group& group : row.groups) groups.push_back(group.ranks);
    document["rows"].push_back({{"collective", toString(row.collective)},
                                {"active", row.groups[0].size()},
                                {"scenario", row.scenario},
                                {"groups", groups},
                                {"ranks", topology.ranks},
                                {"bytes", row.bytes},
                                {"direct_s", orNull(row.direct)},
                                {"limit_s", row.limit},
                                {"limit", orNull(speedup(row))}});
  }
  return document.dump(2) + "\n";
}

int showLimits(const LimitsOptions& options) {
  if (!options.json.empty()) requireWritable(options.json);
  CallArguments arguments = options.call;
  if (options.all && (!arguments.groups.empty() || arguments.active > 0 || arguments.fused)) {
    throw Error(ErrorCode::InvalidArgument, "--all excludes --groups, --active and --fused");
  }
  const bool every = options.all && arguments.collective.empty();
  if (every) arguments.collective = toString(Collective::AllReduce);
  requireCollective(arguments, "--all");
  const DescribedCall call = describeCall(arguments, "mesh");
  const auto only = every ? std::nullopt : std::optional(call.request.collective);
  const auto rows = options.all ? regularRows(call, only)
                                : std::vector{limitRow(call.request.collective, call.request.groups,
                                                       call.bytes, call.topology)};
  print(rows, call.topology);
  if (!options.json.empty()) writeFileAtomically(options.json, toJson(rows, call.topology));
  return kOk;
}

}  // namespace

void addLimitsCommand(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("limits", "Show the least time that any schedule needs");
  auto options = std::make_shared<LimitsOptions>();
  addCallArguments(*sub, options->call);
  sub->add_flag("--all", options->all,
                "All collectives, or the one named, for groups of 2, 3 and 4, single and fused");
  sub->add_option("--json", options->json, "Write the rows to FILE");
  sub->callback([&action, options] { action = [options] { return showLimits(*options); }; });
}

}  // namespace byway::tools
