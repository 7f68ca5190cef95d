// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace byway {

// Results of this size and more are no longer in the caches when their reader comes to them.
inline constexpr std::size_t kStreamedBytes = std::size_t{8} << 20;

// Copies whose two ends do not overlap.
//
// std::memcpy copies 8 KB and more by one instruction (rep movsb), which on AMD's Zen is several
// times slower where the two ends lie at certain distances modulo the page size (glibc bug 30994).
// The loops here do not care.
void copy(void* to, const void* from, std::size_t bytes);

// To memory past the caches, so that the old contents of `to` need not be read first. For parts of
// what is larger than the caches.
void streamCopy(void* to, const void* from, std::size_t bytes);

// The same in parts: what they store is ordered before later stores by endStream() alone.
void streamPart(void* to, const void* from, std::size_t bytes);
void endStream();

}  // namespace byway
