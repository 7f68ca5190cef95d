// SPDX-License-Identifier: BSD-3-Clause
// A 64-bit hash that is the same on every machine: plans are compared by it across ranks.
#pragma once

#include <cstdint>
#include <string_view>

namespace byway {

// Mixes one value into a running hash (the finaliser of SplitMix64, Steele et al. 2014, applied to
// a running sum).
constexpr std::uint64_t hashMix(std::uint64_t hash, std::uint64_t value) {
  std::uint64_t z = hash + 0x9e3779b97f4a7c15ULL + value;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

constexpr std::uint64_t hashText(std::string_view text, std::uint64_t hash = 0) {
  for (const char c : text) hash = hashMix(hash, static_cast<unsigned char>(c));
  return hashMix(hash, text.size());
}

}  // namespace byway
