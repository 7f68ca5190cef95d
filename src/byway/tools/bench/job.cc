// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/bench/job.h"

#include <nlohmann/json.hpp>

#include "byway/tools/values.h"

namespace byway::tools {
namespace {

using Json = nlohmann::json;

Json toJson(const DemoCell& cell) {
  Json groups = Json::array(), roots = Json::array();
  for (const Group& group : cell.groups) {
    groups.push_back(group.ranks);
    roots.push_back(group.root);
  }
  return {{"number", cell.number},
          {"collective", toString(cell.collective)},
          {"scenario", static_cast<int>(cell.scenario)},
          {"ranks", cell.ranks},
          {"dtype", toString(cell.dtype)},
          {"groups", groups},
          {"roots", roots},
          {"counts", cell.counts},
          {"live", cell.liveGroups}};
}

DemoCell cellOf(const Json& object) {
  DemoCell cell;
  cell.number = object.at("number");
  cell.collective = collectiveNamed(object.at("collective"));
  cell.scenario = static_cast<Scenario>(object.at("scenario").get<int>());
  cell.ranks = object.at("ranks");
  cell.dtype = dtypeNamed(object.at("dtype"));
  for (std::size_t g = 0; g < object.at("groups").size(); ++g) {
    cell.groups.push_back({object.at("groups")[g].get<std::vector<int>>(), object.at("roots")[g]});
  }
  cell.counts = object.at("counts").get<std::vector<std::uint64_t>>();
  cell.liveGroups = object.at("live");
  return cell;
}

}  // namespace

std::string toJson(const BenchJob& job) {
  Json document{{"rate_Bps", job.links.rate},     {"latency_s", job.links.latency},
                {"timeout_s", job.links.timeout}, {"least", job.rule.least},
                {"most", job.rule.most},          {"half_width", job.rule.halfWidth},
                {"sample_s", job.rule.sample},    {"cells", Json::array()}};
  for (const DemoCell& cell : job.cells) document["cells"].push_back(toJson(cell));
  return document.dump();
}

BenchJob benchJobFromJson(const std::string& text) {
  const Json document = Json::parse(text);
  BenchJob job;
  job.links.rate = document.at("rate_Bps");
  job.links.latency = document.at("latency_s");
  job.links.timeout = document.at("timeout_s");
  job.rule = {document.at("least"), document.at("most"), document.at("half_width"),
              document.at("sample_s")};
  for (const Json& cell : document.at("cells")) job.cells.push_back(cellOf(cell));
  return job;
}

}  // namespace byway::tools
