// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/plan_text.h"

#include <initializer_list>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "byway/planner/plan_facts.h"

namespace byway {
namespace {

struct Unit {
  double size;
  const char* name;
};

// Four digits in the largest unit that leaves at least one before the point.
std::string scaled(double value, std::initializer_list<Unit> descending) {
  for (const auto& unit : descending) {
    if (value >= unit.size) return fmt::format("{:.4g} {}", value / unit.size, unit.name);
  }
  const auto& smallest = *(descending.end() - 1);
  return fmt::format("{:.4g} {}", value / smallest.size, smallest.name);
}

std::string time(Seconds value) {
  if (value == kNever) return "never";
  return scaled(value, {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}});
}

std::string bytes(double value) {
  return scaled(value, {{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}});
}

std::string heading(const PlanRequest& request, const Topology& topology) {
  std::string groups;
  for (const auto& group : request.groups) {
    groups += fmt::format("{}[{}]", groups.empty() ? "" : " ", fmt::join(group.ranks, " "));
    if (hasRoot(request.collective) && !group.ranks.empty()) {
      groups += fmt::format(" root {}", group.ranks[static_cast<std::size_t>(group.root)]);
    }
  }
  double total = 0;
  for (const auto size : request.blockBytes) total += static_cast<double>(size);
  return fmt::format("{} of {} among {} ranks on {}, {} in {} block{}\n",
                     toString(request.collective), groups.empty() ? "no group" : groups,
                     request.ranks, topology.name, bytes(total), request.blockBytes.size(),
                     request.blockBytes.size() == 1 ? "" : "s");
}

std::string choice(const Plan& plan, const PlanFacts& facts) {
  auto text = fmt::format("chosen   {}: {} predicted, {} messages, hash {:016x}\n",
                          plan.chosen->schedule().name, time(plan.predicted), facts.messages,
                          plan.chosen->hash());
  if (!facts.direct) {
    text += "direct   none: the links between members do not suffice\n";
  } else if (plan.relayed()) {
    text += fmt::format("direct   {}: {} predicted; relay is {:.3f} times as fast\n",
                        plan.direct->schedule().name, time(plan.directPredicted),
                        plan.directPredicted / plan.predicted);
  } else {
    text += "direct   the same\n";
  }
  if (!facts.limit) {
    text += "limit    not computed (unequal blocks, or too many ranks)\n";
  } else if (plan.predicted > 0) {
    text += fmt::format("limit    {} at least; the choice reaches {:.1f} % of it\n",
                        time(*facts.limit), 100 * *facts.limit / plan.predicted);
  }
  text += fmt::format("memory   {} of stage on a helper, {} on any rank", bytes(facts.stage.helper),
                      bytes(facts.stage.any));
  text += facts.rounds > 1 ? fmt::format("; in {} rounds, within {}\n", facts.rounds,
                                         bytes(static_cast<double>(facts.stageQuota)))
                           : "\n";
  return text;
}

std::string candidates(const Plan& plan) {
  auto text = fmt::format("\n  {:<24} {:<7} {:>10} {:>10} {:>10}\n", "candidate", "way", "value",
                          "estimate", "predicted");
  for (const auto& one : plan.considered) {
    const bool chosen = one.name == plan.chosen->schedule().name;
    text += fmt::format("{} {:<24} {:<7} {:>10.6f} {:>10} {:>10}\n", chosen ? '*' : ' ', one.name,
                        one.direct ? "direct" : "relay", one.value, time(one.estimate),
                        one.predicted < 0 ? "-" : time(one.predicted));
  }
  return text;
}

std::string phases(const PlanFacts& facts) {
  if (facts.phases.empty()) return "\nno phases\n";
  auto text =
      fmt::format("\n  {:<10} {:>12} {:>12} {:>6}\n", "phase", "largest link", "mean link", "busy");
  for (std::size_t first = 0; first < facts.phases.size();) {
    std::size_t end = first + 1;
    while (end < facts.phases.size() && facts.phases[end] == facts.phases[first]) ++end;
    const auto& load = facts.phases[first];
    text += fmt::format(
        "  {:<10} {:>12} {:>12} {:>6}\n",
        end == first + 1 ? fmt::format("{}", first) : fmt::format("{}-{}", first, end - 1),
        bytes(load.largest), bytes(load.mean), load.busy);
    first = end;
  }
  return text + fmt::format("  {:<10} {:>12}\n", "all", bytes(facts.busiestLink));
}

}  // namespace

std::string explain(const Plan& plan, const PlanRequest& request, const Topology& topology) {
  const auto facts = factsOf(plan, request, topology);
  return heading(request, topology) + choice(plan, facts) + candidates(plan) + phases(facts);
}

}  // namespace byway
