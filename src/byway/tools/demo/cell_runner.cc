// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/demo/cell_runner.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "byway/tools/demo/results.h"

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

}  // namespace

CellRunner::CellRunner(Team& team, const DemoCell& cell, Seconds sample)
    : team_(team),
      cell_(cell),
      sample_(sample),
      buffers_(cell, team.rank()),
      direct_(team.communicators(cell, Way::Direct)),
      chosen_(team.communicators(cell, Way::Chosen)) {}

void CellRunner::run(const NextPair& more) {
  const bool samePlan = announce();
  std::vector<double> ratios;
  while (more(ratios, samePlan)) {
    // Whichever comes first in a pair may find other caches: take turns.
    Seconds direct = 0, chosen = 0;
    if (ratios.size() % 2 == 0) {
      direct = measure(Way::Direct);
      chosen = measure(Way::Chosen);
    } else {
      chosen = measure(Way::Chosen);
      direct = measure(Way::Direct);
    }
    ratios.push_back(direct / chosen);
  }
}

void CellRunner::runChosen(const NextRun& more) {
  announce();
  std::vector<Seconds> times;
  while (more(times)) times.push_back(measure(Way::Chosen));
}

void CellRunner::end() const { print(toLine(EndEvent{cell_.number})); }

void CellRunner::print(const std::string& line) const {
  if (team_.rank() != 0) return;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

// Plans are made here, outside the measured time. The groups of parallel calls are alike, and so
// are their plans; the first one's are told. Returns whether both ways have the same plan, which
// ranks that take no part do not learn.
bool CellRunner::announce() {
  const auto plans = prepare(chosen_);
  const auto others = prepare(direct_);
  if (plans.empty()) return false;
  const auto& plan = plans.front();
  const auto& other = others.front();
  print(toLine(PlanEvent{cell_.number, plan.route, other.route, plan.hash, other.hash,
                         plan.predicted, other.predicted}));
  return plan.hash == other.hash;
}

std::vector<Communicator::PlanInfo> CellRunner::prepare(
    const std::vector<Communicator*>& communicators) {
  std::vector<Communicator::PlanInfo> plans;
  for (std::size_t i = 0; i < communicators.size(); ++i) {
    plans.push_back(communicators[i]->prepare(cell_.collective, callGroups(cell_, i), cell_.dtype,
                                              {}, cell_.liveGroups));
  }
  return plans;
}

// All ranks see the same times and come to the same number of calls.
Seconds CellRunner::measure(Way way) {
  RunEvent run = measureOnce(way);
  if (repeats_ == 0) repeats_ = repeatsFor(run.duration, sample_);
  std::vector<double> durations{run.duration};
  while (static_cast<int>(durations.size()) < repeats_) {
    const RunEvent next = measureOnce(way);
    durations.push_back(next.duration);
    run.late = std::max(run.late, next.late);
    run.cpu += next.cpu;
    run.wrong += next.wrong;
    run.checked += next.checked;
    run.helperStage = std::max(run.helperStage, next.helperStage);
  }
  run.duration = median(durations);
  print(toLine(run));
  return run.duration;
}

RunEvent CellRunner::measureOnce(Way way) {
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
  return eventOf(way, start, team_.exchange(mine));
}

void CellRunner::callAll(const std::vector<Communicator*>& communicators) {
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
FusedArgs CellRunner::argumentsOf(const std::vector<CallGroup>& groups) {
  const bool isMember = std::any_of(groups.begin(), groups.end(), [&](const CallGroup& group) {
    return std::find(group.ranks.begin(), group.ranks.end(), team_.rank()) != group.ranks.end();
  });
  return isMember ? arguments() : FusedArgs{};
}

FusedArgs CellRunner::arguments() {
  const auto in = buffers_.input();
  const auto out = buffers_.output();
  return {in.empty() ? Region() : Region(in.data(), in.size()),
          out.empty() ? Region() : Region(out.data(), out.size())};
}

// All ranks have the same reports, so they all come to the same time.
RunEvent CellRunner::eventOf(Way way, Seconds start, const std::vector<RankReport>& reports) const {
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
  return event;
}

int repeatsFor(Seconds one, Seconds sample) {
  constexpr double kMost = 32;
  return static_cast<int>(std::clamp(std::ceil(sample / one), 1.0, kMost));
}

}  // namespace byway::tools
