// SPDX-License-Identifier: BSD-3-Clause
// What rank 0 of the demo tells the command, one JSON object a line on its standard output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "byway/base/clock.h"

namespace byway::tools {

enum class Way { Direct, Chosen };

// Before a cell's runs: what the communicators planned.
struct PlanEvent {
  int cell = 0;
  std::string route, directRoute;
  std::uint64_t hash = 0, directHash = 0;
  Seconds predicted = 0, directPredicted = 0;
};

// After every run, over all ranks.
struct RunEvent {
  int cell = 0;
  Way way = Way::Direct;
  Seconds duration = 0;           // from the agreed start to the last end
  Seconds late = 0;               // of the last rank at the start
  Seconds cpu = 0;                // of all ranks together, while it ran
  std::uint64_t wrong = 0;        // values, changed inputs and guard bytes
  std::uint64_t checked = 0;      // values compared
  std::uint64_t helperStage = 0;  // most stage memory of any rank that is no member, in bytes
};

// A cell's last run is over.
struct EndEvent {
  int cell = 0;
};

std::string toLine(const PlanEvent& event);
std::string toLine(const RunEvent& event);
std::string toLine(const EndEvent& event);

struct DemoEvent {
  std::optional<PlanEvent> plan;
  std::optional<RunEvent> run;
  std::optional<EndEvent> end;
};
// None where the line is no event.
DemoEvent eventOf(std::string_view line);

}  // namespace byway::tools
