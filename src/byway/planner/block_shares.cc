// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/block_shares.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "byway/base/error.h"

namespace byway {
namespace {

// Hamilton's method: floors first, then one more to the largest remainders (the first of equals).
std::vector<std::uint64_t> apportion(const std::vector<std::uint64_t>& units) {
  using Wide = unsigned __int128;
  Wide sum = 0;
  for (const auto u : units) sum += u;
  std::vector<std::uint64_t> shares;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> remainders;  // descending by negation
  std::uint64_t left = kWhole;
  for (std::uint32_t i = 0; i < units.size(); ++i) {
    const Wide scaled = Wide{units[i]} * kWhole;
    shares.push_back(static_cast<std::uint64_t>(scaled / sum));
    remainders.emplace_back(~static_cast<std::uint64_t>(scaled % sum), i);
    left -= shares.back();
  }
  const auto middle = remainders.begin() + static_cast<std::ptrdiff_t>(left);
  std::nth_element(remainders.begin(), middle, remainders.end());
  for (auto r = remainders.begin(); r != middle; ++r) ++shares[r->second];
  return shares;
}

}  // namespace

std::vector<std::uint32_t> shareBlocks(Shape& shape, const std::vector<Slice>& slices) {
  std::vector<std::vector<std::uint64_t>> units(shape.blocks.size());
  std::vector<std::uint32_t> shareOf(slices.size(), kDropped);
  for (const bool direct : {true, false}) {
    for (std::size_t s = 0; s < slices.size(); ++s) {
      const Slice& slice = slices[s];
      BYWAY_ASSERT(slice.block >= 0 && slice.block < static_cast<int>(shape.blocks.size()));
      if (slice.direct != direct || slice.units == 0) continue;
      auto& mine = units[static_cast<std::size_t>(slice.block)];
      shareOf[s] = static_cast<std::uint32_t>(mine.size());
      mine.push_back(slice.units);
    }
    for (std::size_t b = 0; direct && b < units.size(); ++b) {
      if (!units[b].empty()) shape.blocks[b].directShares = static_cast<int>(units[b].size());
    }
  }
  for (std::size_t b = 0; b < units.size(); ++b) {
    if (!units[b].empty()) shape.blocks[b].shares = apportion(units[b]);
  }
  return shareOf;
}

}  // namespace byway
