// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/inquiry.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace byway {
namespace {

constexpr std::size_t kHead = 1 + sizeof(std::uint64_t);
constexpr std::size_t kMostRankBytes = 3800;

using Standings = std::span<const RankStanding>;

const RankStanding& at(Standings standings, int rank) {
  return standings[static_cast<std::size_t>(rank)];
}

// Ranks that `from` waits for, directly or by others; itself only where it waits for itself so.
std::vector<bool> reachable(Standings standings, int from) {
  std::vector<bool> seen(standings.size());
  std::vector<int> open{from};
  while (!open.empty()) {
    const int rank = open.back();
    open.pop_back();
    if (at(standings, rank).standing != Standing::Waiting) continue;
    for (const int next : at(standings, rank).waitsFor) {
      if (seen[static_cast<std::size_t>(next)]) continue;
      seen[static_cast<std::size_t>(next)] = true;
      open.push_back(next);
    }
  }
  return seen;
}

bool isAbsent(const RankStanding& s) {
  return s.standing == Standing::Silent || s.standing == Standing::NotEntered ||
         s.standing == Standing::Left;
}

std::string absence(int rank, const RankStanding& s, bool isCollective) {
  if (s.standing == Standing::Silent) {
    return fmt::format(
        "rank {} does not answer (its process is stopped or overloaded, or the way to it is cut)",
        rank);
  }
  if (s.standing == Standing::Left) {
    return fmt::format("rank {} destroyed its communicator", rank);
  }
  if (!isCollective) return fmt::format("rank {} has no call under way", rank);
  return fmt::format("rank {} has not made this call (it made {} so far)", rank, s.calls);
}

std::string end(int rank, const RankStanding& s) {
  if (s.standing == Standing::Complete) {
    return fmt::format("rank {} says that its part is over", rank);
  }
  return fmt::format("rank {} waits for nobody: it is at work itself", rank);
}

void add(Culprits& culprits, const std::vector<int>& ranks, const std::string& text) {
  culprits.ranks.insert(culprits.ranks.end(), ranks.begin(), ranks.end());
  culprits.text += (culprits.text.empty() ? "" : "; ") + text;
}

// Where the waits from `self` end: a rank whose every reachable rank reaches it back.
void addEnds(Culprits& culprits, Standings standings, int self) {
  const int n = static_cast<int>(standings.size());
  std::vector<std::vector<bool>> reach;
  for (int r = 0; r < n; ++r) reach.push_back(reachable(standings, r));
  const auto reaches = [&](int a, int b) {
    return reach[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
  };
  std::vector<bool> told(standings.size());
  for (int r = 0; r < n; ++r) {
    if (told[static_cast<std::size_t>(r)] || (r != self && !reaches(self, r))) continue;
    std::vector<int> circle;
    bool ends = true;
    for (int other = 0; other < n && ends; ++other) {
      if (!reaches(r, other)) continue;
      circle.push_back(other);
      ends = reaches(other, r);
    }
    if (!ends) continue;
    if (circle.empty()) {
      add(culprits, {r}, end(r, at(standings, r)));
      continue;
    }
    for (const int member : circle) told[static_cast<std::size_t>(member)] = true;
    add(culprits, circle,
        fmt::format("ranks {} wait for each other: no rank is missing, so the data needs more time "
                    "than the deadline gives",
                    fmt::join(circle, ", ")));
  }
}

}  // namespace

std::string encode(const RankStanding& standing) {
  std::string bytes(kHead, '\0');
  bytes[0] = static_cast<char>(standing.standing);
  std::memcpy(bytes.data() + 1, &standing.calls, sizeof standing.calls);
  for (const int rank : standing.waitsFor) {
    const auto byte = static_cast<std::size_t>(rank) / 8;
    if (byte >= kMostRankBytes) continue;
    if (bytes.size() <= kHead + byte) bytes.resize(kHead + byte + 1);
    bytes[kHead + byte] = static_cast<char>(bytes[kHead + byte] | 1 << (rank % 8));
  }
  return bytes;
}

std::optional<RankStanding> decodeStanding(const std::string& bytes, int ranks) {
  if (bytes.size() < kHead) return std::nullopt;
  const auto standing = static_cast<std::uint8_t>(bytes[0]);
  if (standing == 0 || standing > static_cast<std::uint8_t>(Standing::Left)) return std::nullopt;
  RankStanding out{static_cast<Standing>(standing), 0, {}};
  std::memcpy(&out.calls, bytes.data() + 1, sizeof out.calls);
  for (std::size_t bit = 0; bit < (bytes.size() - kHead) * 8; ++bit) {
    if ((static_cast<unsigned char>(bytes[kHead + bit / 8]) >> (bit % 8) & 1) == 0) continue;
    if (bit >= static_cast<std::size_t>(ranks)) return std::nullopt;
    out.waitsFor.push_back(static_cast<int>(bit));
  }
  return out;
}

Culprits findCulprits(Standings standings, int self, bool isCollective) {
  Culprits culprits;
  const std::vector<bool> waitedFor = reachable(standings, self);
  for (int r = 0; r < static_cast<int>(standings.size()); ++r) {
    if (r == self || !isAbsent(at(standings, r))) continue;
    if (!isCollective && !waitedFor[static_cast<std::size_t>(r)]) continue;
    add(culprits, {r}, absence(r, at(standings, r), isCollective));
  }
  if (culprits.ranks.empty()) addEnds(culprits, standings, self);
  std::sort(culprits.ranks.begin(), culprits.ranks.end());
  return culprits;
}

}  // namespace byway
