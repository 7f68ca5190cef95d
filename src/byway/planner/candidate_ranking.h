// SPDX-License-Identifier: BSD-3-Clause
// Comparisons of computed times that come out the same on every machine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "byway/base/clock.h"

namespace byway {

// A time without its last 29 bits. Times that are equal on paper but were added up in another order
// become equal; simple fractions, of which many occur, lie in the middle of what is rounded to them
// and not at a border.
inline float coarse(Seconds time) { return static_cast<float>(time); }

// Times within this factor of the best are ties. Not a simple fraction, so that no two
// constructions lie exactly this far apart.
inline constexpr double kTie = 1.0010137;

// What a candidate is judged by.
struct Judged {
  std::size_t index;
  Seconds time;
  int messages;
};

// The one with the fewest messages among those within kTie of the fastest; then the first. Against
// the fastest, not pair by pair, so that a chain of ties cannot drift.
inline const Judged& bestOf(std::span<const Judged> all) {
  float fastest = coarse(all.front().time);
  for (const auto& one : all) fastest = std::min(fastest, coarse(one.time));
  const auto bound = coarse(fastest * kTie);
  const Judged* best = nullptr;
  for (const auto& one : all) {
    if (coarse(one.time) > bound) continue;
    if (best == nullptr || one.messages < best->messages) best = &one;
  }
  return *best;
}

}  // namespace byway
