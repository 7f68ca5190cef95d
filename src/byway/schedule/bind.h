// SPDX-License-Identifier: BSD-3-Clause
// From shares to bytes: cuts every block for exact counts. It can only move the borders between
// shares, so a verified schedule stays right for every count.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "byway/schedule/verify.h"

namespace byway {

// What the caller brings: elements of each block, and where the part that is bound starts within
// it (both per block; large calls are bound in several rounds). Blocks that do not concern the
// rank may be left at 0.
struct BindCounts {
  std::span<const std::uint64_t> blockCounts;  // elements in this round
  std::span<const std::uint64_t> blockStarts;  // elements before this round; empty: all 0
  std::span<const std::uint64_t> blockTotals;  // elements of the whole block; empty: blockCounts
};

// [offset, offset + count) in elements of the block.
struct CellRange {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
};

// Cuts `count` elements by `shares`, by largest remainder (Hamilton's method), in units of
// 64 / elementBytes elements (at least one); the last part that is not empty takes what is left.
// When the units do not suffice for all shares, only the first `directShares` get any.
void cutBlock(std::span<const std::uint64_t> shares, int directShares, std::uint64_t count,
              std::size_t elementBytes, std::span<CellRange> out);

// One rank's schedule with exact sizes. Valid as long as the schedule it was made from.
struct Binding {
  const VerifiedSchedule* schedule = nullptr;
  const LocalProgram* local = nullptr;
  std::size_t elementBytes = 0, accumulatorBytes = 0;
  std::vector<std::uint32_t> cellBase;  // per block: its first cell
  std::vector<CellRange> cells;         // per cell: place in its block, start of the round included
  std::vector<std::uint64_t> inputStart;   // per block: byte offset in the rank's Input
  std::vector<std::uint64_t> outputStart;  // and in its Output (kAbsent where it has none)
  std::vector<std::uint64_t> slotStart;    // per slot: byte offset in the rank's stage memory
  std::uint64_t inputBytes = 0, outputBytes = 0, stageBytes = 0;

  // Where the data of a ref lies. isOne: it is in one place, from `offset` of the space on.
  struct Place {
    Space space = Space::Input;
    bool isOne = false;
    std::uint64_t offset = 0, bytes = 0;
  };
  // By operation of `local`: this rank's end of a transfer, the result of a step and its inputs.
  struct Op {
    Place at;
    std::uint32_t firstInput = 0;  // of inputPlaces
  };
  std::vector<Op> ops;
  std::vector<Place> inputPlaces;

  static constexpr std::uint64_t kAbsent = ~std::uint64_t{0};

  struct Range {
    Space space;
    std::uint64_t offset, bytes;
  };
  std::size_t widthBytes(Width width) const {
    return width == Width::Element ? elementBytes : accumulatorBytes;
  }
  const CellRange& cell(const Piece& piece) const {
    return cells[cellBase[piece.block] + piece.share];
  }
  // The bytes of one piece of one of this rank's refs.
  Range range(const Ref& ref, const Piece& piece) const;
  Place place(const Ref& ref) const;
  // Elements and bytes of all its pieces.
  std::uint64_t elements(const Ref& ref) const;
  std::uint64_t bytes(const Ref& ref) const { return elements(ref) * widthBytes(ref.width); }
};

// The bytes of each publication that the rank makes for transfers [first, end) of mapped phases.
// Transfers that share a publication have one entry together.
std::vector<std::uint64_t> publishedBytes(const Binding& binding, std::uint32_t first,
                                          std::uint32_t end);

Binding bind(const VerifiedSchedule& schedule, int rank, const BindCounts& counts,
             std::size_t elementBytes, std::size_t accumulatorBytes);

}  // namespace byway
