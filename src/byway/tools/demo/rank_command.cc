// SPDX-License-Identifier: BSD-3-Clause
// byway demo-rank: one of the demo's processes. Hidden: `byway demo` starts it.
#include <sys/resource.h>

#include <algorithm>
#include <memory>

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

std::vector<CallGroup> callGroups(const DemoCell& cell, std::size_t communicator) {
  std::vector<CallGroup> groups;
  for (const std::size_t g : cell.groupsOf(static_cast<int>(communicator))) {
    groups.push_back({cell.groups[g].ranks, cell.groups[g].root, cell.counts[g], {}});
  }
  return groups;
}

class CellRunner {
 public:
  CellRunner(Team& team, const DemoCell& cell)
      : team_(team),
        cell_(cell),
        buffers_(cell, team.rank()),
        direct_(team.communicators(cell, Way::Direct)),
        chosen_(team.communicators(cell, Way::Chosen)) {}

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
  // Plans are made here, outside the measured time. The groups of parallel calls are alike, and so
  // are their plans; the first one's are told.
  void announce() {
    const auto plans = prepare(chosen_);
    const auto others = prepare(direct_);
    if (team_.rank() != 0) return;
    const auto& plan = plans.front();
    const auto& other = others.front();
    fmt::print("{}\n", toLine(PlanEvent{cell_.number, plan.route, other.route, plan.hash,
                                        other.hash, plan.predicted, other.predicted}));
    std::fflush(stdout);
  }

  std::vector<Communicator::PlanInfo> prepare(const std::vector<Communicator*>& communicators) {
    std::vector<Communicator::PlanInfo> plans;
    for (std::size_t i = 0; i < communicators.size(); ++i) {
      plans.push_back(communicators[i]->prepare(cell_.collective, callGroups(cell_, i), cell_.dtype,
                                                {}, cell_.liveGroups));
    }
    return plans;
  }

  void measure(Way way) {
    const int call = calls_++;
    const auto& communicators = way == Way::Direct ? direct_ : chosen_;
    buffers_.prepare(call);
    const Seconds start = team_.agreeOnStart();
    RankReport mine;
    mine.late = SteadyClock::instance().now() - start;
    const Seconds cpu = cpuSeconds();
    callAll(communicators);
    mine.end = SteadyClock::instance().now();
    mine.cpu = cpuSeconds() - cpu;
    team_.barrier();  // comparing values would take the cores from ranks that are not through
    mine.wrong = buffers_.countWrong(call);
    mine.checked = buffers_.checked();
    if (!cell_.hasMember(team_.rank())) {
      for (const Communicator* one : communicators) mine.helperStage += one->stagePeak();
    }
    tell(way, start, team_.exchange(mine));
  }

  void callAll(const std::vector<Communicator*>& communicators) {
    CallOptions options;
    options.liveGroups = cell_.liveGroups;
    std::vector<Work> calls;
    for (std::size_t i = 0; i < communicators.size(); ++i) {
      const auto groups = callGroups(cell_, i);
      calls.push_back(communicators[i]->fused(cell_.collective, groups, argumentsOf(groups),
                                              cell_.dtype, {}, options));
    }
    for (Work& one : calls) one.wait();
  }

  // The buffers belong to the call of the rank's own group.
  FusedArgs argumentsOf(const std::vector<CallGroup>& groups) {
    const bool isMember = std::any_of(groups.begin(), groups.end(), [&](const CallGroup& group) {
      return std::find(group.ranks.begin(), group.ranks.end(), team_.rank()) != group.ranks.end();
    });
    return isMember ? arguments() : FusedArgs{};
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
  std::vector<Communicator*> direct_, chosen_;
  int calls_ = 0;
};

int runRank(const DemoOptions& options, const std::string& folder) {
  const DemoSettings settings = options.settings();
  const auto cells = demoCells(settings);
  Team team(settings, folder);
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
