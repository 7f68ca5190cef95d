// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/demo/results.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "byway/tools/demo/virtual_run.h"

namespace byway::tools {
namespace {

using Json = nlohmann::ordered_json;

std::vector<double> ratios(const CellResult& result) {
  std::vector<double> values;
  for (std::size_t i = 0; i < std::min(result.direct.size(), result.chosen.size()); ++i) {
    values.push_back(result.direct[i].duration / result.chosen[i].duration);
  }
  return values;
}

std::vector<double> durations(const std::vector<RunEvent>& runs) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const RunEvent& run : runs) values.push_back(run.duration);
  return values;
}

Seconds latestStart(const CellResult& result) {
  Seconds latest = 0;
  for (const auto* runs : {&result.direct, &result.chosen}) {
    for (const RunEvent& run : *runs) latest = std::max(latest, run.late);
  }
  return latest;
}

Check check(const std::vector<CellResult>& cells, std::string name, bool failing,
            const std::function<std::string(const CellResult&)>& complaint) {
  Check result{std::move(name), true, failing, {}};
  for (const CellResult& cell : cells) {
    const std::string text = complaint(cell);
    if (text.empty()) continue;
    result.held = false;
    result.missed.push_back(cell.cell.name() + ": " + text);
  }
  return result;
}

Json rowOf(const CellResult& result) {
  const DemoCell& cell = result.cell;
  Json groups = Json::array();
  for (const Group& group : cell.groups) groups.push_back(group.ranks);
  const auto [low, high] = result.interval();
  Json row{{"collective", toString(cell.collective)},
           {"active", cell.sizes()},
           {"scenario", toString(cell.scenario)},
           {"groups", groups},
           {"ranks", cell.ranks},
           {"dtype", toString(cell.dtype)},
           {"bytes", cell.bytes()},
           {"direct_s", result.directMedian()},
           {"chosen_s", result.chosenMedian()},
           {"speedup", result.speedup()},
           {"limit", result.limit()},
           {"of_limit", result.speedup() / result.limit()},
           {"route", result.plan.route},
           {"same_plan", result.samePlan()},
           {"peer", nullptr},
           {"peer_s", nullptr},
           {"samples", result.chosen.size()},
           {"interval", {low, high}},
           {"verified", result.verified()}};
  if (const int size = cell.groups[0].size(); cell.sizes() == std::to_string(size)) {
    row["active"] = size;
  }
  row["counts"] = cell.counts;
  row["live_groups"] = cell.liveGroups > 0 ? Json(cell.liveGroups) : Json();
  row["links"] = cell.linksName.empty() ? Json() : Json(cell.linksName);
  row["bar"] = result.bar() > 0 ? Json(result.bar()) : Json();
  row["limit_s"] = result.times.limit;
  row["direct_link_s"] = result.times.directLink;
  row["direct_computed_s"] = result.times.directComputed;
  row["chosen_computed_s"] = result.times.chosenComputed;
  row["direct_of_computed"] = result.directMedian() / result.times.directComputed;
  row["helper_stage_bytes"] = result.helperStage();
  row["late_start_s"] = latestStart(result);
  row["direct_runs_s"] = durations(result.direct);
  row["chosen_runs_s"] = durations(result.chosen);
  return row;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

CellTimes computeTimes(const DemoCell& cell, const DemoSettings& settings) {
  return computeTimes(cell, demoLinks(settings, cell), planCell(cell, settings));
}

double CellResult::bar() const {
  return cell.barOfLimit > 0 ? cell.barOfLimit * limit() : cell.bar;
}

bool CellResult::complete(int pairs) const {
  return direct.size() == static_cast<std::size_t>(pairs) && chosen.size() == direct.size();
}

Seconds CellResult::directMedian() const { return median(durations(direct)); }
Seconds CellResult::chosenMedian() const { return median(durations(chosen)); }
double CellResult::speedup() const { return median(ratios(*this)); }

std::pair<double, double> CellResult::interval() const {
  const auto values = ratios(*this);
  if (values.empty()) return {0, 0};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {*low, *high};
}

std::uint64_t CellResult::wrong() const {
  std::uint64_t sum = 0;
  for (const auto* runs : {&direct, &chosen}) {
    for (const RunEvent& run : *runs) sum += run.wrong;
  }
  return sum;
}

bool CellResult::verified() const {
  for (const auto* runs : {&direct, &chosen}) {
    for (const RunEvent& run : *runs) {
      if (run.checked == 0) return false;
    }
  }
  return !chosen.empty() && wrong() == 0;
}

std::uint64_t CellResult::helperStage() const {
  std::uint64_t most = 0;
  for (const RunEvent& run : chosen) most = std::max(most, run.helperStage);
  return most;
}

std::vector<Check> DemoResults::checks() const {
  constexpr double kDirectTolerance = 0.03, kTooFast = 0.99;
  std::vector<Check> all;
  all.push_back(check(
      cells, "every value of every rank is right, helpers' memory is untouched", true,
      [](const CellResult& r) { return r.verified() ? "" : fmt::format("{} wrong", r.wrong()); }));
  all.push_back(check(cells, "no relayed run is faster than 0.99 of the limit's time", true,
                      [&](const CellResult& r) -> std::string {
                        for (const RunEvent& run : r.chosen) {
                          if (run.duration >= kTooFast * r.times.limit) continue;
                          return fmt::format("{:.4f} s, the limit is {:.4f} s", run.duration,
                                             r.times.limit);
                        }
                        return "";
                      }));
  all.push_back(check(cells, "direct takes its computed link time, within 3 %", false,
                      [&](const CellResult& r) -> std::string {
                        const double ratio = r.directMedian() / r.times.directComputed;
                        if (std::abs(ratio - 1) <= kDirectTolerance) return "";
                        return fmt::format("{:.4f} s, computed {:.4f} s ({:+.1f} %)",
                                           r.directMedian(), r.times.directComputed,
                                           100 * (ratio - 1));
                      }));
  const bool barred =
      std::any_of(cells.begin(), cells.end(), [](const CellResult& r) { return r.bar() > 0; });
  if (barred) {
    all.push_back(
        check(cells, "speed-ups reach their bars", true, [](const CellResult& r) -> std::string {
          if (r.bar() <= 0 || r.speedup() >= r.bar()) return "";
          return fmt::format("{:.3f}, asked for {:.2f}", r.speedup(), r.bar());
        }));
  }
  return all;
}

std::string DemoResults::toJson() const {
  Json document{{"byway", "results"},        {"version", 1},
                {"command", "demo"},         {"clock", onVirtualClock ? "virtual" : "real"},
                {"rate_Bps", settings.rate}, {"latency_s", settings.latency},
                {"pairs", settings.pairs}};
  document["cores_idle"] = coresIdle < 0 ? Json() : Json(coresIdle);
  document["checks"] = Json::array();
  for (const Check& one : checks()) {
    document["checks"].push_back({{"name", one.name}, {"held", one.held}, {"missed", one.missed}});
  }
  document["rows"] = Json::array();
  for (const CellResult& cell : cells) document["rows"].push_back(rowOf(cell));
  return document.dump(2) + "\n";
}

}  // namespace byway::tools
