// SPDX-License-Identifier: BSD-3-Clause
// Who holds a call up: what ranks say of themselves when they are asked, and what follows from it.
// Pure; asking and answering is the Channel's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace byway {

// Where a rank stands in a call.
enum class Standing : std::uint8_t {
  Silent,      // it has not answered
  NotEntered,  // it answers, but has not made the call
  Waiting,     // it is in the call, and waits for `waitsFor`; for nobody: it is at work itself
  Complete,    // its part is over
  Left,        // it destroyed its communicator
};

struct RankStanding {
  Standing standing = Standing::Silent;
  std::uint64_t calls = 0;    // that it has made on this communicator
  std::vector<int> waitsFor;  // ranks
};

// For the wire. Ranks that do not fit into a message (beyond 30,000) are left out.
std::string encode(const RankStanding& standing);
// Nothing for what is not well formed, or names a rank that is not below `ranks`.
std::optional<RankStanding> decodeStanding(const std::string& bytes, int ranks);

struct Culprits {
  std::vector<int> ranks;  // ascending
  std::string text;  // "rank 3 has not made the call (it made 6); rank 5 does not answer (...)"
};

// `standings` by rank, with what the asking rank `self` knows of itself. Culprits are those that do
// not answer, have left or have not entered; if there are none, those at which the chains of waits
// end that begin at `self`: ranks that wait for nobody, or that wait for each other.
// `isCollective` false: a send or receive, where only ranks that `self` waits for, directly or by
// others, can be to blame.
Culprits findCulprits(std::span<const RankStanding> standings, int self, bool isCollective);

}  // namespace byway
