// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace byway {

// Results of this size and more are no longer in the caches when their reader comes to them.
inline constexpr std::size_t kStreamedBytes = std::size_t{8} << 20;

// Copies to memory past the caches, so that the old contents of `to` need not be read first. For
// parts of what is larger than the caches. The two must not overlap.
void streamCopy(void* to, const void* from, std::size_t bytes);

}  // namespace byway
