// SPDX-License-Identifier: BSD-3-Clause
// What the tests of the packing LP share: the irregular cells of the oracle, and random ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "byway/base/error.h"
#include "byway/planner/packing_problem.h"

namespace byway {

// A cell and the topology that it points to, which must stay where it is.
struct PackingCell {
  std::string name;
  Topology topology;
  Cell cell;
  double limit = 0;  // of the oracle: for links of rate 1 and a largest block of size 1
};

inline double& linkOf(Topology& topology, int from, int to) {
  return topology.links[static_cast<std::size_t>(from) * static_cast<std::size_t>(topology.ranks) +
                        static_cast<std::size_t>(to)];
}

// Blocks of a group get its count times `bytes`, in whole units of 64.
inline void setBytes(Cell& cell, const std::vector<double>& counts, double bytes) {
  cell.blockBytes.clear();
  for (std::size_t g = 0; g < cell.groups.size(); ++g) {
    const double count = counts.empty() ? 1 : counts[g];
    const double size = static_cast<double>(static_cast<std::uint64_t>(count * bytes / 64) * 64);
    const int blocks = blocksPerGroup(cell.collective, cell.groups[g].size());
    cell.blockBytes.insert(cell.blockBytes.end(), static_cast<std::size_t>(blocks), size);
  }
}

// Rows of tests/oracle/limits.json that no formula covers.
inline std::vector<PackingCell> irregularOracleCells(const std::string& path, double rate,
                                                     double bytes) {
  std::ifstream file(path);
  std::vector<PackingCell> result;
  const auto rows = nlohmann::json::parse(file);
  result.reserve(rows.size());  // cells point to topologies
  for (const auto& row : rows) {
    PackingCell& one = result.emplace_back();
    one.name = row["cell"].get<std::string>() + " " + row["collective"].get<std::string>();
    one.limit = row["limit"].get<double>();
    one.topology = meshTopology(row["n"].get<int>(), rate);
    for (const auto& link : row["capacities"]) {
      linkOf(one.topology, link[0].get<int>(), link[1].get<int>()) = rate * link[2].get<double>();
    }
    one.cell.collective = parseCollective(row["collective"].get<std::string>()).value();
    one.cell.ranks = one.topology.ranks;
    one.cell.topology = &one.topology;
    for (const auto& ranks : row["groups"]) {
      one.cell.groups.push_back({ranks.get<std::vector<int>>(), 0});
    }
    setBytes(
        one.cell,
        row["counts"].is_null() ? std::vector<double>{} : row["counts"].get<std::vector<double>>(),
        bytes);
    // No formula either: groups of one size that leave ranks idle.
    const bool idle = !one.cell.single() && !one.cell.coversAllRanks();
    if (one.cell.regular() && !idle && one.name.find("A5") == std::string::npos) result.pop_back();
  }
  return result;
}

// A mesh with slow and missing links, one way or both.
inline Topology randomLinks(std::mt19937_64& random, int ranks, double rate) {
  Topology topology = meshTopology(ranks, rate);
  topology.name = "random";
  const auto kinds = 1 + random() % 12;
  for (int u = 0; u < ranks; ++u) {
    for (int v = 0; v < ranks; ++v) {
      if (u == v || random() % kinds > 2) continue;
      constexpr double kRates[] = {0, 0, 0.25, 0.5, 2};
      linkOf(topology, u, v) = rate * kRates[random() % 5];
    }
  }
  return topology;
}

// Groups of any size over some of the ranks, in any order.
inline std::vector<Group> randomGroups(std::mt19937_64& random, int ranks) {
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<Group> groups;
  std::size_t next = 0;
  do {
    const std::size_t left = order.size() - next;
    const std::size_t size = groups.empty() ? 2 + random() % (left - 1) : 1 + random() % left;
    Group group;
    group.ranks.assign(order.begin() + static_cast<std::ptrdiff_t>(next),
                       order.begin() + static_cast<std::ptrdiff_t>(next + size));
    group.root = static_cast<int>(random() % size);
    groups.push_back(std::move(group));
    next += size;
  } while (next < order.size() && random() % 3 != 0);
  std::shuffle(groups.begin(), groups.end(), random);
  return groups;
}

// Sizes of blocks: alike, by group, or each its own, some of them 0.
inline void randomBytes(std::mt19937_64& random, Cell& cell, double bytes) {
  std::vector<double> counts(cell.groups.size());
  for (double& count : counts) count = static_cast<double>(random() % 5) / 4;
  setBytes(cell, random() % 3 == 0 ? std::vector<double>{} : counts, bytes);
  if (random() % 3 == 0) {
    for (double& size : cell.blockBytes) size = 64 * static_cast<double>(random() % 100);
  }
  if (*std::max_element(cell.blockBytes.begin(), cell.blockBytes.end()) <= 0) {
    setBytes(cell, {}, bytes);
  }
}

// A cell of 3 to 8 ranks whose members reach each other.
inline void drawPackingCell(std::mt19937_64& random, PackingCell& one, double rate, double bytes) {
  for (;;) {
    one.cell = {};
    one.cell.collective = static_cast<Collective>(random() % 8);
    one.cell.ranks = 3 + static_cast<int>(random() % 6);
    one.topology = randomLinks(random, one.cell.ranks, rate);
    one.cell.topology = &one.topology;
    one.cell.groups = randomGroups(random, one.cell.ranks);
    one.cell.partialWeight = 1 + static_cast<double>(random() % 2);
    if (!hasRoot(one.cell.collective)) {
      for (Group& group : one.cell.groups) group.root = 0;
    }
    randomBytes(random, one.cell, bytes);
    try {
      packingProblem(one.cell, false);
      return;
    } catch (const Error&) {  // some member cannot be reached
    }
  }
}

}  // namespace byway
