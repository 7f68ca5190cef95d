// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "byway/planner/plan_facts.h"
#include "byway/planner/plan_text.h"

namespace byway {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity: a candidate that crosses a missing link, or was not built, has no time.
Json timeOrNull(Seconds time) { return time < 0 || time == kNever ? Json() : Json(time); }

Json groupsOf(const PlanRequest& request) {
  Json result = Json::array();
  for (const auto& group : request.groups) {
    result.push_back({{"ranks", group.ranks}, {"root", group.root}});
  }
  return result;
}

Json consideredBy(const Plan& plan) {
  Json result = Json::array();
  for (const auto& one : plan.considered) {
    result.push_back({{"name", one.name},
                      {"direct", one.direct},
                      {"value", one.value},
                      {"estimate_s", timeOrNull(one.estimate)},
                      {"predicted_s", timeOrNull(one.predicted)}});
  }
  return result;
}

Json phasesOf(const PlanFacts& facts) {
  Json result = Json::array();
  for (const auto& load : facts.phases) {
    result.push_back({{"largest_link_bytes", load.largest},
                      {"mean_link_bytes", load.mean},
                      {"busy_links", load.busy}});
  }
  return result;
}

}  // namespace

std::string planToJson(const Plan& plan, const PlanRequest& request, const Topology& topology) {
  const auto facts = factsOf(plan, request, topology);
  const Json document = {
      {"byway", "plan"},
      {"version", 1},
      {"collective", toString(request.collective)},
      {"ranks", request.ranks},
      {"groups", groupsOf(request)},
      {"block_bytes", request.blockBytes},
      {"topology", topology.name},
      {"route", plan.chosen->schedule().name},
      {"hash", fmt::format("{:016x}", plan.chosen->hash())},
      {"same_plan", facts.direct && !plan.relayed()},
      {"direct_route", facts.direct ? Json(plan.direct->schedule().name) : Json()},
      {"chosen_s", plan.predicted},
      {"direct_s", facts.direct ? Json(plan.directPredicted) : Json()},
      {"limit_s", facts.limit ? Json(*facts.limit) : Json()},
      {"messages", facts.messages},
      {"helper_stage_bytes", facts.stage.helper},
      {"stage_bytes", facts.stage.any},
      {"busiest_link_bytes", facts.busiestLink},
      {"phases", phasesOf(facts)},
      {"considered", consideredBy(plan)},
  };
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace byway
