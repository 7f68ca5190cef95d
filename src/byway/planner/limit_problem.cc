// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/limit_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "byway/base/error.h"

namespace byway {
namespace {

[[noreturn]] void refuse(const std::string& reason) {
  throw Error(ErrorCode::InvalidArgument, "limit: " + reason);
}

void validate(const LimitRequest& request, int ranks) {
  if (!request.counts.empty() && request.counts.size() != request.groups.size()) {
    refuse(fmt::format("{} counts for {} groups", request.counts.size(), request.groups.size()));
  }
  for (const double count : request.counts) {
    if (!std::isfinite(count) || count < 0) refuse(fmt::format("count {} is not one", count));
  }
  std::vector<bool> seen(static_cast<std::size_t>(ranks));
  for (const auto& group : request.groups) {
    if (group.root < 0 || group.root >= std::max(group.size(), 1)) {
      refuse(fmt::format("root {} of a group of {}", group.root, group.size()));
    }
    for (const int rank : group.ranks) {
      if (rank < 0 || rank >= ranks) refuse(fmt::format("rank {} of {} ranks", rank, ranks));
      if (seen[static_cast<std::size_t>(rank)]) refuse(fmt::format("rank {} stands twice", rank));
      seen[static_cast<std::size_t>(rank)] = true;
    }
  }
}

struct Nature {
  LimitProblem::Pattern pattern;
  bool reversed;
  bool fromRoot;  // the root is the only source
};

Nature natureOf(Collective collective) {
  using Pattern = LimitProblem::Pattern;
  switch (collective) {
    case Collective::AllReduce:
      return {Pattern::Sums, false, false};
    case Collective::AllGather:
      return {Pattern::Copies, false, false};
    case Collective::ReduceScatter:
      return {Pattern::Copies, true, false};
    case Collective::AllToAll:
      return {Pattern::Pieces, false, false};
    case Collective::Broadcast:
      return {Pattern::Copies, false, true};
    case Collective::Reduce:
      return {Pattern::Copies, true, true};
    case Collective::Scatter:
      return {Pattern::Pieces, false, true};
    case Collective::Gather:
      return {Pattern::Pieces, true, true};
  }
  BYWAY_ASSERT(false);
}

void addLinks(LimitProblem& problem, const Topology& topology, bool reversed, double fastest) {
  for (int u = 0; u < problem.ranks; ++u) {
    for (int v = 0; v < problem.ranks; ++v) {
      const double rate = reversed ? topology.link(v, u) : topology.link(u, v);
      const bool open = problem.egress[static_cast<std::size_t>(u)] > 0 &&
                        problem.ingress[static_cast<std::size_t>(v)] > 0;
      if (u != v && rate > 0 && open) problem.links.push_back({u, v, rate / fastest});
    }
  }
}

// Ranks that data at `source` can reach with the group's links.
std::vector<bool> reachedFrom(const LimitProblem& problem, int group, int source) {
  std::vector<bool> reached(static_cast<std::size_t>(problem.ranks));
  std::vector<int> open{source};
  reached[static_cast<std::size_t>(source)] = true;
  const auto links = problem.linksOf(group);
  while (!open.empty()) {
    const int from = open.back();
    open.pop_back();
    for (const auto e : links) {
      const auto& link = problem.links[e];
      if (link.from != from || reached[static_cast<std::size_t>(link.to)]) continue;
      reached[static_cast<std::size_t>(link.to)] = true;
      open.push_back(link.to);
    }
  }
  return reached;
}

template <typename T>
bool unchanged(const std::vector<T>& values, const std::vector<int>& image) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != values[static_cast<std::size_t>(image[i])]) return false;
  }
  return true;
}

bool linksUnchanged(const LimitProblem& problem, const std::vector<int>& image) {
  const auto n = static_cast<std::size_t>(problem.ranks);
  std::vector<double> rate(n * n);
  const auto at = [&](int u, int v) -> double& {
    return rate[static_cast<std::size_t>(u) * n + static_cast<std::size_t>(v)];
  };
  for (const auto& link : problem.links) at(link.from, link.to) = link.rate;
  for (int u = 0; u < problem.ranks; ++u) {
    for (int v = 0; v < problem.ranks; ++v) {
      const auto iu = image[static_cast<std::size_t>(u)], iv = image[static_cast<std::size_t>(v)];
      if (at(u, v) != at(iu, iv)) return false;
    }
  }
  return true;
}

bool sameSet(std::vector<int> a, std::vector<int> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

std::vector<int> imageOf(const std::vector<int>& ranks, const std::vector<int>& image) {
  std::vector<int> result;
  result.reserve(ranks.size());
  for (const int rank : ranks) result.push_back(image[static_cast<std::size_t>(rank)]);
  return result;
}

bool isSymmetry(const LimitProblem& problem, const LimitSymmetry& symmetry) {
  for (std::size_t g = 0; g < problem.groups.size(); ++g) {
    const auto& from = problem.groups[g];
    const auto& to = problem.groups[static_cast<std::size_t>(symmetry.group[g])];
    if (from.count != to.count || !sameSet(imageOf(from.members, symmetry.rank), to.members) ||
        !sameSet(imageOf(from.sources, symmetry.rank), to.sources)) {
      return false;
    }
  }
  return unchanged(problem.egress, symmetry.rank) && unchanged(problem.ingress, symmetry.rank) &&
         linksUnchanged(problem, symmetry.rank);
}

LimitSymmetry identity(const LimitProblem& problem) {
  LimitSymmetry result;
  result.rank.resize(static_cast<std::size_t>(problem.ranks));
  result.group.resize(problem.groups.size());
  std::iota(result.rank.begin(), result.rank.end(), 0);
  std::iota(result.group.begin(), result.group.end(), 0);
  return result;
}

}  // namespace

std::vector<int> LimitProblem::nodesOf(int group) const {
  if (direct) return groups[static_cast<std::size_t>(group)].members;
  std::vector<int> result(static_cast<std::size_t>(ranks));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

std::vector<std::size_t> LimitProblem::linksOf(int group) const {
  std::vector<bool> inside(static_cast<std::size_t>(ranks));
  for (const int node : nodesOf(group)) inside[static_cast<std::size_t>(node)] = true;
  std::vector<std::size_t> result;
  for (std::size_t e = 0; e < links.size(); ++e) {
    if (inside[static_cast<std::size_t>(links[e].from)] &&
        inside[static_cast<std::size_t>(links[e].to)]) {
      result.push_back(e);
    }
  }
  return result;
}

LimitProblem limitProblem(const LimitRequest& request, const Topology& topology) {
  validate(request, topology.ranks);
  const auto nature = natureOf(request.collective);
  LimitProblem result;
  result.ranks = topology.ranks;
  result.pattern = nature.pattern;
  result.direct = request.direct;
  double largest = 0;
  for (std::size_t g = 0; g < request.groups.size(); ++g) {
    const auto& group = request.groups[g];
    const double count = request.counts.empty() ? 1 : request.counts[g];
    if (count == 0 || group.size() < 2) continue;
    largest = std::max(largest, count);
    const int root = group.ranks[static_cast<std::size_t>(group.root)];
    result.groups.push_back(
        {group.ranks, nature.fromRoot ? std::vector<int>{root} : group.ranks, count});
  }
  for (auto& group : result.groups) group.count /= largest;
  double fastest = *std::max_element(topology.links.begin(), topology.links.end());
  if (fastest <= 0) fastest = 1;  // no links: nobody is reachable
  result.scale = largest / fastest;
  const auto scaled = [&](std::vector<double> ports) {
    for (double& port : ports) port /= fastest;
    return ports;
  };
  result.egress = scaled(nature.reversed ? topology.ingress : topology.egress);
  result.ingress = scaled(nature.reversed ? topology.egress : topology.ingress);
  result.bus = topology.bus / fastest;
  addLinks(result, topology, nature.reversed, fastest);
  return result;
}

void requireReachable(const LimitProblem& problem) {
  for (std::size_t g = 0; g < problem.groups.size(); ++g) {
    const auto& group = problem.groups[g];
    for (const int source : group.sources) {
      const auto reached = reachedFrom(problem, static_cast<int>(g), source);
      for (const int member : group.members) {
        if (reached[static_cast<std::size_t>(member)]) continue;
        refuse(fmt::format("no {}links join ranks {} and {} of group [{}]",
                           problem.direct ? "members' " : "", source, member,
                           fmt::join(group.members, ", ")));
      }
    }
  }
}

std::vector<LimitSymmetry> symmetriesOf(const LimitProblem& problem) {
  std::vector<LimitSymmetry> result;
  for (std::size_t a = 0; a < static_cast<std::size_t>(problem.ranks); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      auto exchange = identity(problem);
      std::swap(exchange.rank[a], exchange.rank[b]);
      if (isSymmetry(problem, exchange)) result.push_back(std::move(exchange));
    }
  }
  for (std::size_t g = 0; g < problem.groups.size(); ++g) {
    for (std::size_t h = 0; h < g; ++h) {
      const auto& one = problem.groups[g].members;
      const auto& other = problem.groups[h].members;
      if (one.size() != other.size()) continue;
      auto exchange = identity(problem);
      std::swap(exchange.group[g], exchange.group[h]);
      for (std::size_t i = 0; i < one.size(); ++i) {
        exchange.rank[static_cast<std::size_t>(one[i])] = other[i];
        exchange.rank[static_cast<std::size_t>(other[i])] = one[i];
      }
      if (isSymmetry(problem, exchange)) result.push_back(std::move(exchange));
    }
  }
  return result;
}

}  // namespace byway
