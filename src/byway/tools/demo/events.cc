// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/demo/events.h"

#include <nlohmann/json.hpp>

namespace byway::tools {

using Json = nlohmann::json;

std::string toLine(const PlanEvent& event) {
  return Json{{"event", "plan"},
              {"cell", event.cell},
              {"route", event.route},
              {"direct_route", event.directRoute},
              {"hash", event.hash},
              {"direct_hash", event.directHash},
              {"predicted", event.predicted},
              {"direct_predicted", event.directPredicted}}
      .dump();
}

std::string toLine(const RunEvent& event) {
  return Json{{"event", "run"},
              {"cell", event.cell},
              {"direct", event.way == Way::Direct},
              {"duration", event.duration},
              {"late", event.late},
              {"cpu", event.cpu},
              {"wrong", event.wrong},
              {"checked", event.checked},
              {"helper_stage", event.helperStage}}
      .dump();
}

std::string toLine(const EndEvent& event) {
  return Json{{"event", "end"}, {"cell", event.cell}}.dump();
}

DemoEvent eventOf(std::string_view line) {
  const Json object = Json::parse(line, nullptr, false);
  DemoEvent event;
  if (!object.is_object() || !object.contains("event")) return event;
  if (object["event"] == "plan") {
    event.plan = PlanEvent{
        object["cell"],        object["route"],     object["direct_route"],    object["hash"],
        object["direct_hash"], object["predicted"], object["direct_predicted"]};
  } else if (object["event"] == "run") {
    event.run = RunEvent{object["cell"],     object["direct"] ? Way::Direct : Way::Chosen,
                         object["duration"], object["late"],
                         object["cpu"],      object["wrong"],
                         object["checked"],  object["helper_stage"]};
  } else if (object["event"] == "end") {
    event.end = EndEvent{object["cell"]};
  }
  return event;
}

}  // namespace byway::tools
