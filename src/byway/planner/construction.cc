// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/construction.h"

#include <algorithm>

#include "byway/schedule/shape.h"

namespace byway {

std::vector<int> Cell::live() const {
  std::vector<int> result;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].size() >= 2) result.push_back(static_cast<int>(g));
  }
  return result;
}

bool Cell::regular() const {
  if (topology != nullptr && !topology->uniformMesh()) return false;
  int size = 0;
  double bytes = -1;
  std::size_t block = 0;
  for (const Group& group : groups) {
    const auto end = block + static_cast<std::size_t>(blocksPerGroup(collective, group.size()));
    if (group.size() >= 2) {
      if (size != 0 && group.size() != size) return false;
      size = group.size();
      for (std::size_t b = block; b < std::min(end, blockBytes.size()); ++b) {
        if (bytes >= 0 && blockBytes[b] != bytes) return false;
        bytes = blockBytes[b];
      }
    }
    block = end;
  }
  return size != 0;
}

bool Cell::coversAllRanks() const {
  int members = 0;
  for (const int g : live()) members += groups[static_cast<std::size_t>(g)].size();
  return members == ranks;
}

std::vector<int> Cell::helpersOf(int group) const {
  std::vector<bool> inside(static_cast<std::size_t>(ranks));
  for (const int r : groups[static_cast<std::size_t>(group)].ranks) {
    inside[static_cast<std::size_t>(r)] = true;
  }
  std::vector<int> result;
  for (int r = 0; r < ranks; ++r) {
    if (!inside[static_cast<std::size_t>(r)]) result.push_back(r);
  }
  return result;
}

}  // namespace byway
