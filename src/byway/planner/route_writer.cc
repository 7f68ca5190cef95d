// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/route_writer.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace byway {
namespace {

constexpr int kPhaseShift = 44;

// Phase, link, spaces and width in one number. Stage before Output: what is to be passed on or
// summed leaves first.
std::uint64_t messageKey(int phase, const Place& from, const Place& to) {
  const std::uint64_t kind = (to.space == Space::Stage ? 0U : 8U) |
                             static_cast<std::uint64_t>(from.space) << 1 |
                             static_cast<std::uint64_t>(from.width);
  return static_cast<std::uint64_t>(phase) << kPhaseShift |
         static_cast<std::uint64_t>(from.rank) << 24 | static_cast<std::uint64_t>(to.rank) << 4 |
         kind;
}

std::uint64_t cellOf(const Piece& piece) {
  return static_cast<std::uint64_t>(piece.block) << 32 | piece.share;
}

}  // namespace

void RouteWriter::cross(int phase, const Place& from, const Place& to) {
  crossings_.push_back({messageKey(phase, from, to), cellOf(from.piece), from, to});
  phases_ = std::max(phases_, phase + 1);
}

void RouteWriter::reduce(int phase, Urgency urgency, const Place& to, std::span<const Place> inputs,
                         int divisor) {
  sums_.push_back({phase, urgency, to, static_cast<std::uint32_t>(inputs_.size()),
                   static_cast<std::uint32_t>(inputs.size()), divisor});
  inputs_.insert(inputs_.end(), inputs.begin(), inputs.end());
  phases_ = std::max(phases_, phase + 1);
}

void RouteWriter::copyOwn(int phase, int rank, Piece piece, bool skipWhenAliased) {
  owns_.push_back({phase, rank, skipWhenAliased, piece});
  phases_ = std::max(phases_, phase + 1);
}

void RouteWriter::writeTransfers(int phase, std::size_t& next) {
  std::vector<Piece> from, to;
  while (next < crossings_.size() &&
         crossings_[next].message >> kPhaseShift == static_cast<std::uint64_t>(phase)) {
    const Crossing& first = crossings_[next];
    from.clear();
    to.clear();
    for (; next < crossings_.size() && crossings_[next].message == first.message; ++next) {
      from.push_back(crossings_[next].from.piece);
      to.push_back(crossings_[next].to.piece);
    }
    const Ref source = builder_.ref(first.from.space, first.from.rank, from, first.from.width);
    builder_.transfer(source, builder_.ref(first.to.space, first.to.rank, to, first.to.width));
  }
}

void RouteWriter::writeSums(int phase, std::size_t& next) {
  std::vector<Ref> refs;
  for (; next < sums_.size() && sums_[next].phase == phase; ++next) {
    const Sum& sum = sums_[next];
    refs.clear();
    for (const Place& in : std::span(inputs_).subspan(sum.firstInput, sum.inputCount)) {
      refs.push_back(builder_.ref(in.space, in.rank, in.piece, in.width));
    }
    const Ref to = builder_.ref(sum.to.space, sum.to.rank, sum.to.piece, sum.to.width);
    builder_.reduce(to, refs, sum.divisor);
  }
}

void RouteWriter::writeCopies(int phase, std::size_t& next) {
  std::vector<Piece> pieces;
  while (next < owns_.size() && owns_[next].phase == phase) {
    const Own& first = owns_[next];
    pieces.clear();
    for (; next < owns_.size() && owns_[next].phase == phase && owns_[next].rank == first.rank;
         ++next) {
      pieces.push_back(owns_[next].piece);
    }
    const Ref to = builder_.ref(Space::Output, first.rank, pieces);
    builder_.copy(to, builder_.ref(Space::Input, first.rank, pieces), first.skipWhenAliased);
  }
}

Schedule RouteWriter::finish(Protocol protocol) && {
  std::sort(crossings_.begin(), crossings_.end(), [](const Crossing& a, const Crossing& b) {
    return std::tie(a.message, a.cell) < std::tie(b.message, b.cell);
  });
  std::stable_sort(sums_.begin(), sums_.end(), [](const Sum& a, const Sum& b) {
    return std::tie(a.phase, a.urgency) < std::tie(b.phase, b.urgency);
  });
  std::stable_sort(owns_.begin(), owns_.end(), [](const Own& a, const Own& b) {
    return std::tie(a.phase, a.rank) < std::tie(b.phase, b.rank);
  });
  std::size_t crossing = 0, sum = 0, own = 0;
  for (int phase = 0; phase < phases_; ++phase) {
    builder_.beginPhase(protocol);
    writeTransfers(phase, crossing);
    writeSums(phase, sum);
    writeCopies(phase, own);
  }
  return std::move(builder_).finish();
}

}  // namespace byway
