// SPDX-License-Identifier: BSD-3-Clause
// Mapped phases: what each rank publishes, who reads it, and which sums read it where it lies.
#pragma once

#include <cstdint>
#include <vector>

#include "byway/schedule/dependences.h"
#include "byway/schedule/schedule.h"

namespace byway {

// Of one rank in one schedule (V11).
inline constexpr std::uint32_t kMostPublications = 256;

// What is too large for a slot goes through a ring of so many bytes a rank, if a phase's
// publications and those of the phases that may be under way with it fit (kLinkWindow, and one for
// the loss at the ring's end); else it stays in the publisher's memory.
inline constexpr std::uint64_t kMappedSlotBytes = std::uint64_t{64} << 10;
inline constexpr std::uint64_t kMappedRingBytes = std::uint64_t{4} << 20;
inline constexpr std::uint64_t kMappedPhaseBytes = kMappedRingBytes / (kLinkWindow + 1);

bool hasMappedPhases(const Schedule& schedule);

// Transfers of one phase that send the same data from the same place share a publication.
struct Publications {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::uint32_t> number;    // per transfer: among its sender's; kNone for a message
  std::vector<std::uint32_t> readers;   // per transfer: transfers that share its publication
  std::vector<std::uint32_t> ofRank;    // per rank: how many it makes
  std::vector<std::uint32_t> foldedBy;  // per transfer: the step that reads it where it lies
};
Publications publicationsOf(const Schedule& schedule);

// Whether ranks could wait for each other in a circle if a publication's memory were in use until
// its last reader is done. Then it has to be published as a copy.
bool needsCopies(const Schedule& schedule, const DependenceGraph& graph,
                 const Publications& publications);

}  // namespace byway
