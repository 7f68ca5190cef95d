// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/packing_paths.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace byway {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

LinkPrices randomPrices(std::mt19937& random, int ranks) {
  LinkPrices prices{ranks, {}};
  for (int u = 0; u < ranks; ++u) {
    for (int v = 0; v < ranks; ++v) {
      const bool none = u == v || random() % 4 == 0;
      prices.prices.push_back(none ? kInfinite : static_cast<double>(random() % 8) / 8);
    }
  }
  return prices;
}

// The cheapest tree of any: every rank but the root hangs below another one, or is not in it.
double cheapestTree(const LinkPrices& prices, const std::vector<int>& members, int root,
                    int depth) {
  std::vector<int> above(static_cast<std::size_t>(prices.ranks), -1);
  double best = kInfinite;
  const auto depthOf = [&](int rank) {
    int hops = 0;
    for (; rank != root; ++hops) {
      rank = above[static_cast<std::size_t>(rank)];
      if (rank < 0 || hops > prices.ranks) return prices.ranks + 1;
    }
    return hops;
  };
  const std::function<void(int)> choose = [&](int rank) {
    if (rank < prices.ranks) {
      for (int up = -1; up < prices.ranks; ++up) {
        above[static_cast<std::size_t>(rank)] = up;
        if (up != rank && (rank != root || up == -1)) choose(rank + 1);
      }
      return;
    }
    double cost = 0;
    for (int r = 0; r < prices.ranks; ++r) {
      const int up = above[static_cast<std::size_t>(r)];
      if (up >= 0) cost += prices.at(up, r);
    }
    const bool covers = std::all_of(members.begin(), members.end(),
                                    [&](int member) { return depthOf(member) <= depth; });
    if (covers) best = std::min(best, cost);
  };
  choose(0);
  return best;
}

void expectTree(const LinkPrices& prices, const std::vector<int>& members, int root, int depth,
                const std::vector<Hop>& tree, double atMost) {
  std::vector<int> stages(static_cast<std::size_t>(prices.ranks), -1);
  stages[static_cast<std::size_t>(root)] = 0;
  double cost = 0;
  for (const Hop& hop : tree) {
    const int since = stages[static_cast<std::size_t>(hop.from)];
    ASSERT_GE(since, 0);
    ASSERT_GE(hop.stage, since);
    ASSERT_LT(hop.stage, depth);
    ASSERT_EQ(stages[static_cast<std::size_t>(hop.to)], -1) << "reached twice";
    stages[static_cast<std::size_t>(hop.to)] = hop.stage + 1;
    cost += prices.at(hop.from, hop.to);
  }
  for (const int member : members) EXPECT_GE(stages[static_cast<std::size_t>(member)], 0);
  EXPECT_LE(cost, atMost + 1e-12);
}

TEST(PackingPaths, TreesAreTheCheapestOfAll) {
  std::mt19937 random(3);
  for (int round = 0; round < 30; ++round) {
    const LinkPrices prices = randomPrices(random, 5);
    const std::vector<int> members{4, 1, 2};
    const PathTable paths(prices, 4);
    const TreeTable trees(prices, paths, members, 4);
    for (int depth = 1; depth <= 4; ++depth) {
      for (int root = 0; root < 5; ++root) {
        const double best = cheapestTree(prices, members, root, depth);
        EXPECT_DOUBLE_EQ(trees.cost(depth, root), best);
        if (best < kInfinite) {
          expectTree(prices, members, root, depth, trees.tree(depth, root), best);
        }
      }
    }
  }
}

TEST(PackingPaths, PathsAreTreesToOneMember) {
  std::mt19937 random(4);
  for (int round = 0; round < 30; ++round) {
    const LinkPrices prices = randomPrices(random, 6);
    const PathTable paths(prices, 3);
    const TreeTable trees(prices, paths, {5}, 3);
    for (int hops = 1; hops <= 3; ++hops) {
      for (int from = 0; from < 5; ++from) {
        EXPECT_DOUBLE_EQ(paths.cost(hops, from, 5), trees.cost(hops, from));
        if (paths.cost(hops, from, 5) == kInfinite) continue;
        expectTree(prices, {5}, from, hops, paths.path(hops, from, 5), paths.cost(hops, from, 5));
      }
    }
  }
}

TEST(PackingPaths, ManyMembersGetATreeAllTheSame) {
  std::mt19937 random(5);
  for (int round = 0; round < 10; ++round) {
    const LinkPrices prices = randomPrices(random, 12);
    std::vector<int> members;
    for (int r = 0; r < 11; ++r) members.push_back(r);
    const PathTable paths(prices, 4);
    const TreeTable trees(prices, paths, members, 4);
    for (const int root : {0, 11}) {
      if (trees.cost(4, root) == kInfinite) continue;
      expectTree(prices, members, root, 4, trees.tree(4, root), trees.cost(4, root));
    }
  }
}

}  // namespace
}  // namespace byway
