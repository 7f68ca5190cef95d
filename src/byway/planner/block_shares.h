// SPDX-License-Identifier: BSD-3-Clause
// From the sizes of slices to the shares of blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "byway/planner/routes.h"

namespace byway {

// Cuts each block of `shape` that has slices by their units, by largest remainder, direct slices
// first. Returns for each slice its share's index; kDropped for slices of zero units.
inline constexpr std::uint32_t kDropped = ~std::uint32_t{0};
std::vector<std::uint32_t> shareBlocks(Shape& shape, const std::vector<Slice>& slices);

}  // namespace byway
