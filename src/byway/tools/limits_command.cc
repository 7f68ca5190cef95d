// SPDX-License-Identifier: BSD-3-Clause
// byway limits: the least time that any schedule needs, by the flow LP.
#include <algorithm>
#include <array>
#include <memory>

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
  std::uint64_t bytes = 0;       // of the largest group
  double direct = 0, limit = 0;  // seconds
};

LimitRow limitRow(Collective collective, const std::vector<Group>& groups,
                  const std::vector<std::uint64_t>& bytes, const Topology& topology) {
  LimitRow row{collective, groups.size() == 1 ? "single" : "fused", groups, 0, 0, 0};
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
  request.direct = true;
  row.direct = unit * fluidLimit(request, topology);
  return row;
}

std::vector<LimitRow> regularRows(const DescribedCall& call) {
  constexpr std::array kActive{2, 3, 4};
  const int n = call.topology.ranks;
  std::vector<LimitRow> rows;
#define BYWAY_X(id, name, reducing) Collective::id,
  for (const Collective collective : {BYWAY_COLLECTIVES(BYWAY_X)}) {
#undef BYWAY_X
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

double speedup(const LimitRow& row) { return row.limit > 0 ? row.direct / row.limit : 1; }

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
               fmt::format("{:.4f}", row.direct * kMilli),
               fmt::format("{:.4f}", row.limit * kMilli), fmt::format("{:.4f}", speedup(row))});
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
                                {"direct_s", row.direct},
                                {"limit_s", row.limit},
                                {"limit", speedup(row)}});
  }
  return document.dump(2) + "\n";
}

int showLimits(const LimitsOptions& options) {
  if (!options.json.empty()) requireWritable(options.json);
  CallArguments arguments = options.call;
  if (options.all && arguments.collective.empty()) arguments.collective = "allreduce";
  if (arguments.collective.empty()) {
    throw Error(ErrorCode::InvalidArgument,
                "name a COLLECTIVE (" + collectiveNames() + ") or --all");
  }
  const DescribedCall call = describeCall(arguments, "mesh");
  const auto rows = options.all ? regularRows(call)
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
  addCallArguments(*sub, options->call, false);
  sub->add_flag("--all", options->all,
                "All collectives for groups of 2, 3 and 4, single and fused");
  sub->add_option("--json", options->json, "Write the rows to FILE");
  sub->callback([&action, options] { action = [options] { return showLimits(*options); }; });
}

}  // namespace byway::tools
