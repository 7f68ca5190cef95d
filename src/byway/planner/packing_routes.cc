// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/packing_routes.h"

#include <algorithm>

namespace byway {
namespace {

const std::vector<int>& membersOf(const PackingProblem& problem, const PackingJob& job) {
  return problem.groups[static_cast<std::size_t>(job.group)];
}

bool sums(const PackingJob& job) {
  return job.kind == PackingJob::Kind::SumTo || job.kind == PackingJob::Kind::SumAll;
}

bool insideGroup(const PackingProblem& problem, const PackingJob& job, const Hop& hop) {
  const auto& members = membersOf(problem, job);
  const auto inside = [&](int rank) {
    return std::find(members.begin(), members.end(), rank) != members.end();
  };
  return inside(hop.from) && inside(hop.to);
}

// What crosses the links out of a summing rank.
double weightOut(const PackingProblem& problem, const PackingJob& job) {
  const bool partial = job.kind == PackingJob::Kind::SumTo && membersOf(problem, job).size() > 2;
  return partial ? job.partialWeight : 1;
}

Slice emptySlice(const PackingJob& job, int at) {
  Slice slice;
  slice.kind = sums(job) ? SliceKind::SumAt : SliceKind::Move;
  slice.block = job.block;
  slice.at = sums(job) ? at : -1;
  return slice;
}

// All routes with one rank `middle` in between: the source itself or a target give the direct ones.
Slice plainSlice(const PackingProblem& problem, const PackingJob& job, int middle) {
  const auto& members = membersOf(problem, job);
  Slice slice = emptySlice(job, middle);
  int stage = 0;
  if (sums(job)) {
    for (const int r : members) {
      if (r != middle && r != job.target) slice.in.push_back({r, {r, middle, 0}});
    }
    stage = 1;
  } else if (middle != job.source) {
    slice.out.push_back({job.source, middle, 0});
    stage = 1;
  }
  for (const int r : members) {
    const bool wanted = job.target < 0 || r == job.target;
    if (wanted && r != middle && r != job.source) slice.out.push_back({middle, r, stage});
  }
  return slice;
}

Slice exchangeSlice(const PackingProblem& problem, const PackingJob& job) {
  Slice slice = emptySlice(job, -1);
  slice.kind = SliceKind::SumEverywhere;
  for (const int from : membersOf(problem, job)) {
    for (const int to : membersOf(problem, job)) {
      if (from != to) slice.in.push_back({from, {from, to, 0}});
    }
  }
  return slice;
}

bool linksExist(const PackingProblem& problem, const PackingJob& job, const Slice& slice) {
  const auto exists = [&](const Hop& hop) { return problem.usable(job.group, hop.from, hop.to); };
  return std::all_of(slice.out.begin(), slice.out.end(), exists) &&
         std::all_of(slice.in.begin(), slice.in.end(),
                     [&](const InHop& in) { return exists(in.hop); });
}

}  // namespace

PackingRoute finishedRoute(const PackingProblem& problem, std::size_t index, Slice slice) {
  const PackingJob& job = problem.jobs[index];
  PackingRoute route{index, 0, std::move(slice), {}};
  const double weight = weightOut(problem, job);
  bool direct = true;
  const auto add = [&](const Hop& hop, double load) {
    direct = direct && insideGroup(problem, job, hop);
    route.depth = std::max(route.depth, hop.stage + 1);
    route.loads.emplace_back(problem.link(hop.from, hop.to), load);
  };
  for (const InHop& in : route.slice.in) add(in.hop, 1);
  for (const Hop& hop : route.slice.out) add(hop, weight);
  route.slice.direct = direct;
  std::sort(route.loads.begin(), route.loads.end());
  std::size_t kept = 0;
  for (std::size_t i = 1; i < route.loads.size(); ++i) {
    if (route.loads[i].first == route.loads[kept].first) {
      route.loads[kept].second += route.loads[i].second;
    } else {
      route.loads[++kept] = route.loads[i];
    }
  }
  route.loads.resize(kept + 1);
  return route;
}

std::vector<PackingRoute> plainRoutes(const PackingProblem& problem) {
  std::vector<PackingRoute> routes;
  for (std::size_t j = 0; j < problem.jobs.size(); ++j) {
    const PackingJob& job = problem.jobs[j];
    const auto addIfPossible = [&](Slice slice) {
      if (linksExist(problem, job, slice)) {
        routes.push_back(finishedRoute(problem, j, std::move(slice)));
      }
    };
    if (job.kind == PackingJob::Kind::SumAll) addIfPossible(exchangeSlice(problem, job));
    for (int middle = 0; middle < problem.ranks; ++middle) {
      if (job.kind == PackingJob::Kind::Path && middle == job.target) continue;
      // A pair's contribution is not summed before it is there.
      const bool pair = membersOf(problem, job).size() == 2;
      if (job.kind == PackingJob::Kind::SumTo && pair && middle != job.target) {
        Slice slice = emptySlice(job, job.target);
        const int other = membersOf(problem, job)[0] == job.target ? membersOf(problem, job)[1]
                                                                   : membersOf(problem, job)[0];
        if (middle == other) continue;
        slice.in = {{other, {other, middle, 0}}, {other, {middle, job.target, 1}}};
        addIfPossible(std::move(slice));
        continue;
      }
      addIfPossible(plainSlice(problem, job, middle));
    }
  }
  return routes;
}

bool RouteSearch::exact(const PackingProblem& problem) {
  return std::all_of(problem.jobs.begin(), problem.jobs.end(), [&](const PackingJob& job) {
    return job.target >= 0 || membersOf(problem, job).size() <= TreeTable::kExactMembers;
  });
}

RouteSearch::RouteSearch(const PackingProblem& problem, std::vector<double> linkPrices, int stages)
    : problem_(problem), stages_(stages) {
  const int n = problem.ranks;
  groups_.reserve(problem.groups.size());
  for (std::size_t g = 0; g < problem.groups.size(); ++g) {
    LinkPrices prices{n, linkPrices};
    for (int u = 0; u < n; ++u) {
      for (int v = 0; v < n; ++v) {
        if (!problem.usable(static_cast<int>(g), u, v)) prices.prices[problem.link(u, v)] = kNoWay;
      }
    }
    PathTable paths(prices, problem.hops);
    groups_.push_back({std::move(prices), std::move(paths), {}});
  }
  for (const auto& job : problem.jobs) {
    Group& group = groups_[static_cast<std::size_t>(job.group)];
    if (job.target >= 0 || !group.trees.empty()) continue;
    group.trees.emplace_back(group.prices, group.paths, membersOf(problem, job), problem.hops);
  }
}

double RouteSearch::costIn(const PackingJob& job, const Group& group, int at, int hops) const {
  double sum = 0;
  for (const int r : membersOf(problem_, job)) {
    if (r != job.target) sum += group.paths.cost(hops, r, at);
  }
  return sum;
}

double RouteSearch::costOut(const PackingJob& job, const Group& group, int from, int hops) const {
  if (job.target < 0) return group.trees[0].cost(hops, from);
  return weightOut(problem_, job) * group.paths.cost(hops, from, job.target);
}

std::vector<Hop> RouteSearch::hopsOut(const PackingJob& job, const Group& group, int from,
                                      int hops) const {
  return job.target < 0 ? group.trees[0].tree(hops, from)
                        : group.paths.path(hops, from, job.target);
}

RouteSearch::Way RouteSearch::wayOut(const PackingJob& job, const Group& group, int from) const {
  Way best;
  for (int out = 1; out <= problem_.hops; ++out) {
    const double cost = pipelineFactor(stages_, out) * costOut(job, group, from, out);
    if (cost < best.cost) best = {cost, 0, out};
  }
  return best;
}

// A pair's contribution is not summed before it is there, so only `target` can be its `at`.
RouteSearch::Way RouteSearch::wayThrough(const PackingJob& job, const Group& group, int at) const {
  Way best;
  const bool ends = at == job.target;
  if (job.target >= 0 && !ends && membersOf(problem_, job).size() == 2) return best;
  std::vector<double> onward{ends ? 0.0 : kNoWay};  // by hops
  for (int out = 1; !ends && out <= problem_.hops; ++out) {
    onward.push_back(costOut(job, group, at, out));
  }
  for (int in = 1; in <= problem_.hops; ++in) {
    const double inward = costIn(job, group, at, in);
    for (std::size_t out = 0; out < onward.size(); ++out) {
      const double factor = pipelineFactor(stages_, in + static_cast<int>(out));
      const double cost = factor * (inward + onward[out]);
      if (cost < best.cost) best = {cost, in, static_cast<int>(out)};
    }
  }
  return best;
}

Slice RouteSearch::move(const PackingJob& job, const Group& group, const Way& way) const {
  Slice slice = emptySlice(job, -1);
  slice.out = hopsOut(job, group, job.source, way.out);
  return slice;
}

// Contributions with fewer hops leave later, so that all arrive in one stage.
Slice RouteSearch::sum(const PackingJob& job, const Group& group, const Way& way, int at) const {
  Slice slice = emptySlice(job, at);
  std::vector<std::pair<int, std::vector<Hop>>> paths;
  std::size_t longest = 0;
  for (const int r : membersOf(problem_, job)) {
    if (r == job.target || r == at) continue;
    paths.emplace_back(r, group.paths.path(way.in, r, at));
    longest = std::max(longest, paths.back().second.size());
  }
  for (auto& [contributor, path] : paths) {
    for (Hop& hop : path) {
      hop.stage += static_cast<int>(longest - path.size());
      slice.in.push_back({contributor, hop});
    }
  }
  if (at == job.target) return slice;
  slice.out = hopsOut(job, group, at, way.out);
  for (Hop& hop : slice.out) hop.stage += static_cast<int>(longest);
  return slice;
}

std::vector<RouteSearch::Found> RouteSearch::cheapest(std::size_t index) const {
  const PackingJob& job = problem_.jobs[index];
  const Group& group = groups_[static_cast<std::size_t>(job.group)];
  std::vector<Found> found;
  if (!sums(job)) {
    const Way way = wayOut(job, group, job.source);
    if (way.cost == kNoWay) return {};
    found.push_back({way.cost, finishedRoute(problem_, index, move(job, group, way))});
    return found;
  }
  for (int at = 0; at < problem_.ranks; ++at) {
    const Way way = wayThrough(job, group, at);
    if (way.cost == kNoWay) continue;
    found.push_back({way.cost, finishedRoute(problem_, index, sum(job, group, way, at))});
  }
  return found;
}

}  // namespace byway
