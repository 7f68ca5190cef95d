// SPDX-License-Identifier: BSD-3-Clause
// byway demo-rank: one of the demo's processes. Hidden: `byway demo` starts it.
#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "byway/tools/command.h"
#include "byway/tools/demo/options.h"
#include "byway/tools/demo/oracle.h"
#include "byway/tools/demo/team.h"

namespace byway::tools {
namespace {

Seconds cpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::vector<CallGroup> callGroups(const DemoCell& cell, std::uint64_t count) {
  std::vector<CallGroup> groups;
  for (const Group& group : cell.groups) groups.push_back({group.ranks, group.root, count, {}});
  return groups;
}

class CellRunner {
 public:
  CellRunner(Team& team, const DemoCell& cell)
      : team_(team), cell_(cell), buffers_(cell, team.rank()) {}

  void run(int pairs) {
    announce();
    for (int pair = 0; pair < pairs; ++pair) {
      // Whichever comes first in a pair may find other caches: take turns.
      const bool directFirst = pair % 2 == 0;
      measure(directFirst ? Way::Direct : Way::Chosen);
      measure(directFirst ? Way::Chosen : Way::Direct);
    }
  }

 private:
  // Plans are made here, outside the measured time.
  void announce() {
    Communicator* const chosen = team_.communicator(cell_.ranks, Way::Chosen);
    Communicator* const direct = team_.communicator(cell_.ranks, Way::Direct);
    if (chosen == nullptr) return;
    const auto groups = callGroups(cell_, cell_.count);
    const auto plan = chosen->planFor(cell_.collective, groups, cell_.dtype);
    const auto other = direct->planFor(cell_.collective, groups, cell_.dtype);
    if (team_.rank() != 0) return;
    fmt::print("{}\n", toLine(PlanEvent{cell_.number, plan.route, other.route, plan.hash,
                                        other.hash, plan.predicted, other.predicted}));
    std::fflush(stdout);
  }

  void measure(Way way) {
    const int call = calls_++;
    Communicator* const communicator = team_.communicator(cell_.ranks, way);
    buffers_.prepare(call);
    const Seconds start = team_.agreeOnStart();
    RankReport mine;
    mine.late = SteadyClock::instance().now() - start;
    const Seconds cpu = cpuSeconds();
    if (communicator != nullptr) {
      communicator
          ->fused(cell_.collective, callGroups(cell_, cell_.count), arguments(), cell_.dtype)
          .wait();
    }
    mine.end = SteadyClock::instance().now();
    mine.cpu = cpuSeconds() - cpu;
    team_.barrier();  // comparing values would take the cores from ranks that are not through
    mine.wrong = buffers_.countWrong(call);
    mine.checked = buffers_.checked();
    if (communicator != nullptr && !cell_.hasMember(team_.rank())) {
      mine.helperStage = communicator->stagePeak();
    }
    tell(way, start, team_.exchange(mine));
  }

  FusedArgs arguments() {
    const auto in = buffers_.input();
    const auto out = buffers_.output();
    return {in.empty() ? Region() : Region(in.data(), in.size()),
            out.empty() ? Region() : Region(out.data(), out.size())};
  }

  void tell(Way way, Seconds start, const std::vector<RankReport>& reports) const {
    if (team_.rank() != 0) return;
    RunEvent event;
    event.cell = cell_.number;
    event.way = way;
    for (const RankReport& report : reports) {
      event.duration = std::max(event.duration, report.end - start);
      event.late = std::max(event.late, report.late);
      event.cpu += report.cpu;
      event.wrong += report.wrong;
      event.checked += report.checked;
      event.helperStage = std::max(event.helperStage, report.helperStage);
    }
    fmt::print("{}\n", toLine(event));
    std::fflush(stdout);
  }

  Team& team_;
  const DemoCell& cell_;
  DemoBuffers buffers_;
  int calls_ = 0;
};

int runRank(const DemoOptions& options, const std::string& folder) {
  const DemoSettings settings = options.settings();
  const auto cells = demoCells(settings);
  std::set<int> sizes;
  for (const DemoCell& cell : cells) sizes.insert(cell.ranks);
  Team team(settings, {sizes.begin(), sizes.end()}, folder);
  for (const DemoCell& cell : cells) CellRunner(team, cell).run(settings.pairs);
  return kOk;
}

}  // namespace

void addDemoRankCommand(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("demo-rank", "");
  sub->group("");  // not in the help
  auto options = std::make_shared<DemoOptions>();
  auto folder = std::make_shared<std::string>();
  addDemoOptions(*sub, *options);
  sub->add_option("--folder", *folder)->required();
  sub->callback([&action, options, folder] {
    action = [options, folder] { return runRank(*options, *folder); };
  });
}

}  // namespace byway::tools
