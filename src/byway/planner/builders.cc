// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/builders.h"

#include <cmath>

namespace byway {

int moveRing(double slice, double lanes) {
  constexpr double kShareOfMessage = 0.1;
  return 3 * slice * lanes > kShareOfMessage * (1 + 1e-9) ? 2 : 3;
}

SliceList::SliceList(const Cell& cell, std::string name, int ring, Protocol protocol)
    : shape_(makeShape(cell.collective, cell.ranks, cell.groups)),
      options_{std::move(name), ring, protocol} {
  int first = 0;
  for (const Group& g : shape_.groups) {
    firstBlocks_.push_back(first);
    first += blocksPerGroup(cell.collective, g.size());
  }
}

int SliceList::block(int g, int source, int destination) const {
  return firstBlocks_[static_cast<std::size_t>(g)] +
         blockInGroup(shape_.collective, group(g).size(), source, destination);
}

Slice& SliceList::add(SliceKind kind, int block, double size, int lane, bool direct) {
  constexpr double kUnits = 1ULL << 40;
  Slice& slice = slices_.emplace_back();
  slice.kind = kind;
  slice.block = block;
  slice.units = static_cast<std::uint64_t>(std::llround(size * kUnits));
  slice.direct = direct;
  slice.lane = lane;
  return slice;
}

Slice& SliceList::move(int block, double size, int lane, bool direct) {
  return add(SliceKind::Move, block, size, lane, direct);
}

Slice& SliceList::sumAt(int at, int block, double size, int lane, bool direct) {
  Slice& slice = add(SliceKind::SumAt, block, size, lane, direct);
  slice.at = at;
  return slice;
}

Slice& SliceList::sumEverywhere(int block, double size, int lane) {
  return add(SliceKind::SumEverywhere, block, size, lane, true);
}

Schedule SliceList::emit() && { return byway::emit(std::move(shape_), slices_, options_); }

std::vector<int> without(const std::vector<int>& ranks, int rank) {
  std::vector<int> result;
  for (const int r : ranks) {
    if (r != rank) result.push_back(r);
  }
  return result;
}

void contribute(Slice& slice, const Group& group, int to, int stage) {
  slice.in.reserve(slice.in.size() + group.ranks.size());
  for (const int r : group.ranks) {
    if (r != to) slice.in.push_back({r, {r, to, stage}});
  }
}

void distribute(Slice& slice, const Group& group, int from, int stage, int skip) {
  slice.out.reserve(slice.out.size() + group.ranks.size());
  for (const int r : group.ranks) {
    if (r != from && r != skip) slice.out.push_back({from, r, stage});
  }
}

Candidate makeCandidate(const std::shared_ptr<const Cell>& cell, std::string name, int number,
                        const CandidateFacts& facts, Build build) {
  Candidate candidate;
  candidate.direct = facts.direct;
  candidate.stages = facts.stages;
  candidate.value = facts.value;
  candidate.hops = facts.hops;
  candidate.messagesPerRank = facts.messages;
  candidate.build = [cell, name, number, ring = facts.ring, protocol = facts.protocol, build] {
    SliceList list(*cell, name, ring, protocol);
    build(list, *cell, number);
    return std::move(list).emit();
  };
  candidate.name = std::move(name);
  return candidate;
}

void addIfFaster(std::vector<Candidate>& candidates, Candidate candidate) {
  if (!candidates.empty() && candidate.value > candidates.back().value * 0.995) return;
  candidates.push_back(std::move(candidate));
}

double geometricSum(double first, double ratio, int count) {
  double sum = 0;
  for (; count > 0; --count, first *= ratio) sum += first;
  return sum;
}

}  // namespace byway
