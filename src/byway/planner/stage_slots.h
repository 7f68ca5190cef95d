// SPDX-License-Identifier: BSD-3-Clause
// Which slot of a rank's stage memory holds what, and until when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "byway/schedule/schedule.h"

namespace byway {

// A point in the order of a schedule: the transfers of phase p, then its steps.
using Moment = int;
inline Moment transfersOf(int phase) { return 2 * phase; }
inline Moment stepsOf(int phase) { return 2 * phase + 1; }

// Each (lane, rank, role) has a ring of slots that its slices use in turn. A ring grows past its
// size only when the slot whose turn it is is still to be read, so routes of any timing are safe.
class StageSlots {
 public:
  explicit StageSlots(ScheduleBuilder& builder) : builder_(builder) { rings_.reserve(256); }

  std::uint32_t take(int lane, int rank, int role, int size, Moment write, Moment lastRead) {
    Ring& ring = rings_[key(lane, rank, role)];
    if (ring.slots.size() >= static_cast<std::size_t>(size)) {
      Slot& turn = ring.slots[ring.next];
      if (turn.lastRead < write) {
        ring.next = (ring.next + 1) % ring.slots.size();
        turn.lastRead = lastRead;
        return turn.index;
      }
    }
    ring.slots.push_back({builder_.newSlot(rank), lastRead});
    return ring.slots.back().index;
  }

 private:
  struct Slot {
    std::uint32_t index;
    Moment lastRead;
  };
  struct Ring {
    std::vector<Slot> slots;
    std::size_t next = 0;
  };
  static std::uint64_t key(int lane, int rank, int role) {
    return static_cast<std::uint64_t>(lane) << 40 | static_cast<std::uint64_t>(rank) << 20 |
           static_cast<std::uint64_t>(role);
  }

  ScheduleBuilder& builder_;
  std::unordered_map<std::uint64_t, Ring> rings_;
};

}  // namespace byway
