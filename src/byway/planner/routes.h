// SPDX-License-Identifier: BSD-3-Clause
// The one emitter: slices with routes and stages in, a schedule out. Every construction, regular or
// from the packing LP, only fills in slices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "byway/schedule/schedule.h"

namespace byway {

// Data crosses from -> to in phase `stage`.
struct Hop {
  int from = 0, to = 0;
  int stage = 0;
  bool operator==(const Hop&) const = default;
};

// A share of a block and how it travels.
//
//   Move        `out` leads from the block's source to every destination (a path or an out-tree;
//               hops in an order in which each `from` already has the data).
//   SumAt       raw contributions of the members reach `at` over `in` (paths; several may share a
//               forwarding rank, each raw contribution is carried on its own), are summed there,
//               and `out` carries the result: to all other members (allreduce, an out-tree), or to
//               the destination (reduce-scatter, reduce: a path; empty when `at` is the
//               destination).
//   SumEverywhere  allreduce only: every member sends its raw contribution to every other (hops
//               in `in`, one stage), and each sums for itself.
enum class SliceKind : std::uint8_t { Move, SumAt, SumEverywhere };

struct InHop {
  int contributor = 0;  // rank whose raw contribution crosses
  Hop hop;
};

struct Slice {
  SliceKind kind = SliceKind::Move;
  int block = 0;
  std::uint64_t units = 1;  // size, relative to the units of the block's other slices
  bool direct = false;      // uses only links between members
  // Slices of one lane use the same ranks in the same way, one after another, and take turns in
  // the lane's stage slots (a ring). Lanes are numbered by the construction.
  int lane = 0;
  int at = -1;  // SumAt: the summing rank
  std::vector<InHop> in;
  std::vector<Hop> out;
};

struct EmitOptions {
  std::string name;
  int ring = 3;                            // slots that a lane uses for each thing it keeps
  Protocol protocol = Protocol::Messages;  // of all phases
};

// Writes local copies (a member's own block, the root's own part), sums in the order that
// docs/schedules.md states, stage slots, messages (what goes from one space of a rank to one of
// another in a phase is one), shares (direct slices first in each block). Slices of zero units are
// dropped. Throws Error{Internal} when a route is impossible; what it returns is not verified yet.
Schedule emit(Shape shape, const std::vector<Slice>& slices, const EmitOptions& options);

}  // namespace byway
