// SPDX-License-Identifier: BSD-3-Clause
// Cheapest paths and out-trees of limited depth, for prices of links: the pricing problems of the
// packing LP.
#pragma once

#include <cstdint>
#include <vector>

#include "byway/planner/routes.h"

namespace byway {

// Prices of links, [from * ranks + to]; infinite where there is none.
struct LinkPrices {
  int ranks = 0;
  std::vector<double> prices;
  double at(int from, int to) const {
    return prices[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) +
                  static_cast<std::size_t>(to)];
  }
};

// Between all pairs, of at most 0, 1, ..., `hops` hops.
class PathTable {
 public:
  PathTable(const LinkPrices& prices, int hops);

  double cost(int hops, int from, int to) const { return costs_[index(hops, from, to)]; }
  // Its hops in order; stages count from 0.
  std::vector<Hop> path(int hops, int from, int to) const;

 private:
  std::size_t index(int hops, int from, int to) const {
    const auto n = static_cast<std::size_t>(ranks_);
    return (static_cast<std::size_t>(hops) * n + static_cast<std::size_t>(from)) * n +
           static_cast<std::size_t>(to);
  }
  int ranks_;
  std::vector<double> costs_;
  std::vector<int> before_;  // the last rank before `to`; -1: as with a hop less
};

// Out-trees from any rank to the members (to the other members, from a member), of depth at most
// 1, ..., `depth`. Exact up to kExactMembers (Dreyfus and Wagner's recursion, by depth); above, the
// cheapest paths grown together.
class TreeTable {
 public:
  static constexpr std::size_t kExactMembers = 9;
  // `prices` and `paths` must outlive it.
  TreeTable(const LinkPrices& prices, const PathTable& paths, std::vector<int> members, int depth);

  double cost(int depth, int root) const;
  // Its hops, each after the one that brings the data; stages count from 0.
  std::vector<Hop> tree(int depth, int root) const;

 private:
  using Set = std::uint32_t;  // of members, by position
  std::size_t index(Set set, int depth, int rank) const {
    return (static_cast<std::size_t>(set) * static_cast<std::size_t>(depth_ + 1) +
            static_cast<std::size_t>(depth)) *
               static_cast<std::size_t>(prices_.ranks) +
           static_cast<std::size_t>(rank);
  }
  bool exact() const { return members_.size() <= kExactMembers; }
  double& at(Set set, int depth, int rank) { return costs_[index(set, depth, rank)]; }
  double at(Set set, int depth, int rank) const { return costs_[index(set, depth, rank)]; }
  void fill(Set set, int depth, int rank);
  void collect(Set set, int depth, int rank, std::vector<Hop>& hops) const;
  std::vector<Hop> tidied(const std::vector<Hop>& hops, int root) const;

  const LinkPrices& prices_;
  const PathTable& paths_;
  std::vector<int> members_;
  int depth_;
  std::vector<Set> own_;  // by rank: the set of that member alone; 0 for others
  std::vector<double> costs_;
};

}  // namespace byway
