// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/bench/measured.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "byway/tools/values.h"

namespace byway::tools {
namespace {

using Json = nlohmann::ordered_json;

std::vector<double> durationsOf(const std::vector<RunEvent>& runs) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const RunEvent& run : runs) values.push_back(run.duration);
  return values;
}

double least(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

std::vector<double> pairRatios(const std::vector<double>& direct,
                               const std::vector<double>& chosen) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(direct.size(), chosen.size()); ++i) {
    ratios.push_back(direct[i] / chosen[i]);
  }
  return ratios;
}

template <typename T>
Json orNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <typename T>
std::optional<T> optionalOf(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional<T>(value.get<T>());
}

// A flat cell goes one way only: its samples are times, not ratios.
void takeFlat(Measured& cell, const std::vector<double>& times, const StopRule& rule) {
  cell.direct = cell.chosen;
  cell.directBest = cell.chosenBest;
  const Interval interval = medianInterval(times);
  cell.interval = {cell.chosen / interval.high, cell.chosen / interval.low};
  cell.samePlan = true;
  cell.decided = times.size() == 1 || isDecided(times, rule);
}

void takePairs(Measured& cell, const std::vector<double>& ratios, const StopRule& rule) {
  if (cell.samePlan) {  // one plan has one time, whatever the noise
    cell.interval = {1, 1};
    return;
  }
  cell.speedup = median(ratios);
  cell.interval = medianInterval(ratios);
  cell.decided = ratios.size() == 1 || isDecided(ratios, rule);
}

// What a row says of the cell alone.
Measured rowOfCell(const DemoCell& cell) {
  Measured made;
  made.key = keyOf(cell);
  made.name = cell.name();
  made.collective = toString(cell.collective);
  made.active = cell.sizes();
  made.scenario = toString(cell.scenario);
  made.dtype = toString(cell.dtype);
  for (const Group& group : cell.groups) made.groups.push_back(group.ranks);
  made.counts = cell.counts;
  made.ranks = cell.ranks;
  made.live = cell.liveGroups;
  made.bytes = cell.bytes();
  return made;
}

}  // namespace

std::string keyAgainst(const DemoCell& cell, const std::string& peer) {
  return keyOf(cell) + " against=" + peer;
}

Measured flatRow(const DemoCell& cell, const std::vector<double>& times) {
  Measured made = rowOfCell(cell);
  made.chosen = made.direct = median(times);
  made.chosenBest = made.directBest = least(times);
  made.samePlan = true;
  return made;
}

double Measured::algorithmBandwidth() const {
  const Collective what = collectiveNamed(collective);
  const bool whole =
      what == Collective::AllReduce || what == Collective::Broadcast || what == Collective::Reduce;
  const double units = whole ? 1 : static_cast<double>(groups.at(0).size());
  return static_cast<double>(bytes) * units / chosen;
}

double Measured::busBandwidth() const {
  const auto n = static_cast<double>(groups.at(0).size());
  const Collective what = collectiveNamed(collective);
  if (what == Collective::Broadcast || what == Collective::Reduce) return algorithmBandwidth();
  const double part = (n - 1) / n;
  return algorithmBandwidth() * (what == Collective::AllReduce ? 2 * part : part);
}

Measured measuredOf(const CellResult& result, double predictedGain, const StopRule& rule) {
  const DemoCell& cell = result.cell;
  const auto direct = durationsOf(result.direct);
  const auto chosen = durationsOf(result.chosen);
  Measured made = rowOfCell(cell);
  made.route = result.plan.route;
  made.samples = static_cast<int>(chosen.size());
  made.wrong = result.wrong();
  made.direct = median(direct);
  made.chosen = median(chosen);
  made.directBest = least(direct);
  made.chosenBest = least(chosen);
  made.samePlan = result.samePlan();
  made.verified = result.verified();
  made.predictedGain = predictedGain;
  made.directComputed = result.times.directComputed;
  made.limitTime = result.times.limit;
  if (cell.scenario == Scenario::Flat) {
    takeFlat(made, chosen, rule);
  } else {
    made.limit = result.limit();
    takePairs(made, pairRatios(direct, chosen), rule);
  }
  return made;
}

Json rowOf(const Measured& cell) {
  Json active = cell.active;
  if (cell.active.find('+') == std::string::npos) active = std::stoi(cell.active);
  return {{"collective", cell.collective},
          {"active", active},
          {"scenario", cell.scenario},
          {"groups", cell.groups},
          {"ranks", cell.ranks},
          {"dtype", cell.dtype},
          {"bytes", cell.bytes},
          {"direct_s", cell.direct},
          {"chosen_s", cell.chosen},
          {"speedup", cell.speedup},
          {"limit", orNull(cell.limit)},
          {"of_limit", cell.limit ? Json(cell.speedup / *cell.limit) : Json()},
          {"route", cell.route},
          {"same_plan", cell.samePlan},
          {"peer", orNull(cell.peer)},
          {"peer_s", orNull(cell.peerTime)},
          {"samples", cell.samples},
          {"interval", {cell.interval.low, cell.interval.high}},
          {"verified", cell.verified}};
}

Json detailOf(const Measured& cell) {
  return {{"key", cell.key},
          {"name", cell.name},
          {"counts", cell.counts},
          {"live_groups", cell.live},
          {"wrong", cell.wrong},
          {"direct_best_s", cell.directBest},
          {"chosen_best_s", cell.chosenBest},
          {"decided", cell.decided},
          {"predicted_gain", cell.predictedGain},
          {"direct_computed_s", cell.directComputed},
          {"limit_s", cell.limitTime},
          {"algorithm_Bps", cell.algorithmBandwidth()},
          {"bus_Bps", cell.busBandwidth()}};
}

Measured measuredOf(const Json& row, const Json& detail) {
  Measured cell;
  cell.key = detail.at("key");
  cell.name = detail.at("name");
  cell.collective = row.at("collective");
  const Json& active = row.at("active");
  cell.active = active.is_string() ? active.get<std::string>() : std::to_string(active.get<int>());
  cell.scenario = row.at("scenario");
  cell.dtype = row.at("dtype");
  cell.route = row.at("route");
  cell.groups = row.at("groups").get<std::vector<std::vector<int>>>();
  cell.counts = detail.at("counts").get<std::vector<std::uint64_t>>();
  cell.ranks = row.at("ranks");
  cell.live = detail.at("live_groups");
  cell.samples = row.at("samples");
  cell.bytes = row.at("bytes");
  cell.wrong = detail.at("wrong");
  cell.direct = row.at("direct_s");
  cell.chosen = row.at("chosen_s");
  cell.directBest = detail.at("direct_best_s");
  cell.chosenBest = detail.at("chosen_best_s");
  cell.speedup = row.at("speedup");
  cell.interval = {row.at("interval").at(0), row.at("interval").at(1)};
  cell.limit = optionalOf<double>(row.at("limit"));
  cell.peer = optionalOf<std::string>(row.at("peer"));
  cell.peerTime = optionalOf<double>(row.at("peer_s"));
  cell.samePlan = row.at("same_plan");
  cell.verified = row.at("verified");
  cell.decided = detail.at("decided");
  cell.predictedGain = detail.at("predicted_gain");
  cell.directComputed = detail.at("direct_computed_s");
  cell.limitTime = detail.at("limit_s");
  return cell;
}

}  // namespace byway::tools
