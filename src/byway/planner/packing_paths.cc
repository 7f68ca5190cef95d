// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/packing_paths.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "byway/base/error.h"

namespace byway {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace

PathTable::PathTable(const LinkPrices& prices, int hops) : ranks_(prices.ranks) {
  const auto level = static_cast<std::size_t>(ranks_) * static_cast<std::size_t>(ranks_);
  costs_.assign(level * static_cast<std::size_t>(hops + 1), kInfinite);
  before_.assign(costs_.size(), -1);
  for (int r = 0; r < ranks_; ++r) costs_[index(0, r, r)] = 0;
  for (int h = 1; h <= hops; ++h) {
    for (int from = 0; from < ranks_; ++from) {
      for (int to = 0; to < ranks_; ++to) {
        double& best = costs_[index(h, from, to)];
        best = cost(h - 1, from, to);
        // Only what is cheaper, so that no rank is passed twice.
        for (int last = 0; last < ranks_; ++last) {
          const double through = cost(h - 1, from, last) + prices.at(last, to);
          if (through >= best) continue;
          best = through;
          before_[index(h, from, to)] = last;
        }
      }
    }
  }
}

std::vector<Hop> PathTable::path(int hops, int from, int to) const {
  std::vector<Hop> result;
  for (int at = to; at != from; --hops) {
    BYWAY_ASSERT(hops > 0);
    const int last = before_[index(hops, from, at)];
    if (last < 0) continue;
    result.push_back({last, at, 0});
    at = last;
  }
  std::reverse(result.begin(), result.end());
  for (std::size_t i = 0; i < result.size(); ++i) result[i].stage = static_cast<int>(i);
  return result;
}

TreeTable::TreeTable(const LinkPrices& prices, const PathTable& paths, std::vector<int> members,
                     int depth)
    : prices_(prices),
      paths_(paths),
      members_(std::move(members)),
      depth_(depth),
      own_(static_cast<std::size_t>(prices.ranks), 0) {
  if (!exact()) return;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    own_[static_cast<std::size_t>(members_[i])] = Set{1} << i;
  }
  const Set sets = Set{1} << members_.size();
  costs_.assign(index(sets, 0, 0), kInfinite);
  for (Set set = 0; set < sets; ++set) {
    for (int d = 0; d <= depth_; ++d) {
      for (int rank = 0; rank < prices_.ranks; ++rank) fill(set, d, rank);
    }
  }
}

// The cheapest tree below `rank`: one branch to a next rank, or two trees below `rank` itself.
void TreeTable::fill(Set set, int depth, int rank) {
  double& best = at(set, depth, rank);
  const Set own = own_[static_cast<std::size_t>(rank)];
  if (set == 0) {
    best = 0;
    return;
  }
  if ((set & own) != 0) {
    best = at(set & ~own, depth, rank);
    return;
  }
  if (depth == 0) return;
  for (int next = 0; next < prices_.ranks; ++next) {
    best = std::min(best, prices_.at(rank, next) + at(set, depth - 1, next));
  }
  const Set first = set & (~set + 1);
  for (Set part = (set - 1) & set; part != 0; part = (part - 1) & set) {
    if ((part & first) == 0) continue;
    best = std::min(best, at(part, depth, rank) + at(set & ~part, depth, rank));
  }
}

double TreeTable::cost(int depth, int root) const {
  if (exact()) return at((Set{1} << members_.size()) - 1, depth, root);
  double sum = 0;
  for (const Hop& hop : tree(depth, root)) sum += prices_.at(hop.from, hop.to);
  for (const int member : members_) {
    if (paths_.cost(depth, root, member) == kInfinite) return kInfinite;
  }
  return sum;
}

std::vector<Hop> TreeTable::tree(int depth, int root) const {
  std::vector<Hop> hops;
  if (exact()) {
    collect((Set{1} << members_.size()) - 1, depth, root, hops);
    return tidied(hops, root);
  }
  for (const int member : members_) {
    if (paths_.cost(depth, root, member) == kInfinite) continue;
    const auto path = paths_.path(depth, root, member);
    hops.insert(hops.end(), path.begin(), path.end());
  }
  return tidied(hops, root);
}

// Finds again how the cost came about: the sums are the same, so the comparisons are exact.
void TreeTable::collect(Set set, int depth, int rank, std::vector<Hop>& hops) const {
  set &= ~own_[static_cast<std::size_t>(rank)];
  if (set == 0) return;
  const double best = at(set, depth, rank);
  BYWAY_ASSERT(best < kInfinite && depth > 0);
  while (depth > 1 && at(set, depth - 1, rank) == best) --depth;
  for (int next = 0; next < prices_.ranks; ++next) {
    if (prices_.at(rank, next) + at(set, depth - 1, next) != best) continue;
    hops.push_back({rank, next, 0});
    return collect(set, depth - 1, next, hops);
  }
  for (Set part = (set - 1) & set; part != 0; part = (part - 1) & set) {
    if (at(part, depth, rank) + at(set & ~part, depth, rank) != best) continue;
    collect(part, depth, rank, hops);
    return collect(set & ~part, depth, rank, hops);
  }
  BYWAY_ASSERT(false);
}

// Branches that pass the same rank become one, which only makes the tree cheaper.
std::vector<Hop> TreeTable::tidied(const std::vector<Hop>& hops, int root) const {
  std::vector<Hop> reached{{-1, root, -1}};  // breadth first
  std::vector<bool> seen(static_cast<std::size_t>(prices_.ranks));
  seen[static_cast<std::size_t>(root)] = true;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const Hop to = reached[i];
    for (const Hop& hop : hops) {
      if (hop.from != to.to || seen[static_cast<std::size_t>(hop.to)]) continue;
      seen[static_cast<std::size_t>(hop.to)] = true;
      reached.push_back({hop.from, hop.to, to.stage + 1});
    }
  }
  std::vector<bool> wanted(static_cast<std::size_t>(prices_.ranks));
  for (const int member : members_) wanted[static_cast<std::size_t>(member)] = true;
  std::vector<Hop> result;
  for (std::size_t i = reached.size(); i-- > 1;) {
    if (!wanted[static_cast<std::size_t>(reached[i].to)]) continue;
    wanted[static_cast<std::size_t>(reached[i].from)] = true;
    result.push_back(reached[i]);
  }
  std::reverse(result.begin(), result.end());
  return result;
}

}  // namespace byway
