// SPDX-License-Identifier: BSD-3-Clause
// Which operations must be over before another may start, rank by rank: because of the data, and
// because links are bounded (kLinkWindow).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "byway/schedule/schedule.h"

namespace byway {

// A rank's view of the schedule: operation ids are 2t for sending transfer t, 2t + 1 for receiving
// it, 2T + s for step s (T transfers in all).
using OpId = std::uint32_t;
inline OpId sendOp(std::uint32_t transfer) { return 2 * transfer; }
inline OpId recvOp(std::uint32_t transfer) { return 2 * transfer + 1; }
inline OpId stepOp(const Schedule& s, std::uint32_t step) {
  return static_cast<OpId>(2 * s.transfers.size()) + step;
}

struct Dependence {
  OpId before, after;  // both run on the same rank
  bool operator==(const Dependence&) const = default;
  auto operator<=>(const Dependence&) const = default;
};

// Messages of one directed link that may be under way at once, in the order of the schedule: each
// waits, on both sides, for the one so many before it. What is ready early is then not all posted
// at the start of a call, where it would hold up the first messages of other links.
inline constexpr std::size_t kLinkWindow = 4;

struct DependenceGraph {
  std::vector<Dependence> edges;  // sorted by `after`, then `before`, without repeats
};

// Input and Output of the same share count as one place, so the graph is right in place and out of
// place; only copies that are skipped in place keep the two apart. `withWriteAfterRead` = false is
// for tests that must see a wrong graph be refused.
DependenceGraph dependencesOf(const Schedule& schedule, bool withWriteAfterRead = true);

// Dense numbering of the places that accesses meet in: a share in a rank's user buffers, or a slot.
class Places {
 public:
  explicit Places(const Schedule& schedule);
  std::uint32_t count() const { return count_; }
  std::uint32_t of(const Ref& ref, const Piece& piece) const {
    const auto rank = static_cast<std::size_t>(ref.rank);
    return ref.space == Space::Stage ? stageBase_[rank] + piece.slot
                                     : userBase_[rank] + cellBase_[piece.block] + piece.share;
  }
  // Index of a share among all shares of the schedule.
  std::uint32_t cell(const Piece& piece) const { return cellBase_[piece.block] + piece.share; }
  std::uint32_t cells() const { return cells_; }

 private:
  std::vector<std::uint32_t> cellBase_, userBase_, stageBase_;
  std::uint32_t cells_ = 0, count_ = 0;
};

}  // namespace byway
