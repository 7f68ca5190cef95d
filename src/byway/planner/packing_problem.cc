// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/packing_problem.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "byway/base/error.h"

namespace byway {
namespace {

// Paths of more hops than this gain nothing: each hop more is a link's load and a stage.
constexpr int kUsefulHops = 4;

void setRates(PackingProblem& problem, const Topology& topology) {
  const double fastest = *std::max_element(topology.links.begin(), topology.links.end());
  if (fastest <= 0) return;  // nobody is reachable
  for (int u = 0; u < problem.ranks; ++u) {
    const auto from = static_cast<std::size_t>(u);
    problem.egress.push_back(topology.egress[from] / fastest);
    problem.ingress.push_back(topology.ingress[from] / fastest);
    for (int v = 0; v < problem.ranks; ++v) {
      const bool open =
          u != v && topology.egress[from] > 0 && topology.ingress[static_cast<std::size_t>(v)] > 0;
      if (open) problem.rates[problem.link(u, v)] = topology.link(u, v) / fastest;
    }
  }
  if (topology.bus > 0) problem.bus = topology.bus / fastest;
  problem.fastest = fastest;
}

PackingJob jobOf(const Cell& cell, const Block& block, const Group& group) {
  PackingJob job;
  const auto rankAt = [&](int position) {
    return position < 0 ? -1 : group.ranks[static_cast<std::size_t>(position)];
  };
  job.source = rankAt(block.source);
  job.target = rankAt(block.destination);
  if (reduces(cell.collective)) {
    job.kind = job.target < 0 ? PackingJob::Kind::SumAll : PackingJob::Kind::SumTo;
    job.partialWeight = cell.partialWeight;
  } else {
    job.kind = job.target < 0 ? PackingJob::Kind::Tree : PackingJob::Kind::Path;
  }
  return job;
}

void addJobs(PackingProblem& problem, const Cell& cell) {
  const Shape shape = makeShape(cell.collective, cell.ranks, cell.groups);
  std::vector<double> bytes = cell.blockBytes;
  if (bytes.empty()) bytes.assign(shape.blocks.size(), 1.0);
  const double largest = std::max(*std::max_element(bytes.begin(), bytes.end()), 1e-300);
  int group = -1;
  for (std::size_t b = 0; b < shape.blocks.size(); ++b) {
    const Block& block = shape.blocks[b];
    const Group& members = shape.groups[static_cast<std::size_t>(block.group)];
    if (members.size() < 2 || (block.source >= 0 && block.source == block.destination)) continue;
    if (group != block.group) problem.groups.push_back(members.ranks);
    group = block.group;
    PackingJob job = jobOf(cell, block, members);
    job.block = static_cast<int>(b);
    job.group = static_cast<int>(problem.groups.size()) - 1;
    job.size = bytes[b] / largest;
    problem.jobs.push_back(job);
  }
}

// Hops from `source` to every rank; -1: no way.
std::vector<int> distances(const PackingProblem& problem, int group, int source) {
  std::vector<int> result(static_cast<std::size_t>(problem.ranks), -1);
  result[static_cast<std::size_t>(source)] = 0;
  std::vector<int> queue{source};
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const int from = queue[next];
    for (int to = 0; to < problem.ranks; ++to) {
      int& distance = result[static_cast<std::size_t>(to)];
      if (distance >= 0 || !problem.usable(group, from, to)) continue;
      distance = result[static_cast<std::size_t>(from)] + 1;
      queue.push_back(to);
    }
  }
  return result;
}

// Checks that `to` hears of `from`, and lets paths be long enough for it.
void require(PackingProblem& problem, int group, const std::vector<int>& distance, int from,
             int to) {
  const int hops = distance[static_cast<std::size_t>(to)];
  if (hops < 0) {
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("plan: no {}links lead from rank {} to rank {} of group [{}]",
                            problem.membersOnly ? "members' " : "", from, to,
                            fmt::join(problem.groups[static_cast<std::size_t>(group)], ", ")));
  }
  problem.hops = std::max(problem.hops, hops);
}

void requireReachable(PackingProblem& problem) {
  for (int g = 0; g < static_cast<int>(problem.groups.size()); ++g) {
    for (const int from : problem.groups[static_cast<std::size_t>(g)]) {
      const auto distance = distances(problem, g, from);
      for (const auto& job : problem.jobs) {
        if (job.group != g || (job.source >= 0 && job.source != from)) continue;
        for (const int to : problem.groups[static_cast<std::size_t>(g)]) {
          if (job.target < 0 || job.target == to) require(problem, g, distance, from, to);
        }
      }
    }
  }
}

}  // namespace

bool PackingProblem::usable(int group, int from, int to) const {
  if (rates[link(from, to)] <= 0) return false;
  if (!membersOnly) return true;
  const auto& members = groups[static_cast<std::size_t>(group)];
  const auto inside = [&](int rank) {
    return std::find(members.begin(), members.end(), rank) != members.end();
  };
  return inside(from) && inside(to);
}

PackingProblem packingProblem(const Cell& cell, bool membersOnly) {
  PackingProblem problem;
  problem.ranks = cell.ranks;
  problem.membersOnly = membersOnly;
  const auto n = static_cast<std::size_t>(cell.ranks);
  problem.rates.assign(n * n, 0.0);
  setRates(problem, *cell.topology);
  addJobs(problem, cell);
  problem.hops = std::min(kUsefulHops, std::max(1, cell.ranks - 1));
  requireReachable(problem);
  return problem;
}

}  // namespace byway
