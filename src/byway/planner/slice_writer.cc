// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/slice_writer.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/schedule/fold.h"

namespace byway {
namespace {

constexpr int kConsumed = 2;  // slots for what a local sum takes at once
constexpr Moment kAlways = -1;

}  // namespace

SliceWriter::SliceWriter(RouteWriter& writer, const EmitOptions& options)
    : writer_(writer), options_(options) {
  memberships_.resize(index(shape().ranks));
  for (std::size_t g = 0; g < shape().groups.size(); ++g) {
    const auto& ranks = shape().groups[g].ranks;
    for (std::size_t p = 0; p < ranks.size(); ++p) {
      memberships_[index(ranks[p])] = {static_cast<int>(g), static_cast<int>(p)};
    }
  }
  for (const Block& block : shape().blocks) lastSend_.emplace_back(block.shares.size(), 0);
}

int SliceWriter::consumedRing() const { return std::min(kConsumed, options_.ring); }

void SliceWriter::impossible(const char* why) const {
  throw Error(ErrorCode::Internal, fmt::format("{}: slice of block {} (lane {}): {}", options_.name,
                                               slice_->block, slice_->lane, why));
}

Place SliceWriter::slot(int rank, int role, int ring, Moment write, Moment lastRead, Width width) {
  Place place{Space::Stage, width, rank, piece_};
  place.piece.slot = writer_.slots().take(slice_->lane, rank, role, ring, write, lastRead);
  return place;
}

const SliceWriter::Held* SliceWriter::find(int contributor, int rank) const {
  for (const Held& held : held_) {
    if (held.contributor == contributor && held.place.rank == rank) return &held;
  }
  return nullptr;
}

// Where the hop's data lies, if it is there before the hop.
const Place& SliceWriter::sendable(int contributor, const Hop& hop) const {
  const Held* held = find(contributor, hop.from);
  if (held == nullptr || held->since >= transfersOf(hop.stage)) {
    impossible("a hop sends what is not there yet");
  }
  return held->place;
}

Moment SliceWriter::lastInRead(int contributor, int rank) const {
  Moment last = kAlways;
  for (const InHop& in : slice_->in) {
    if (in.contributor == contributor && in.hop.from == rank) {
      last = std::max(last, transfersOf(in.hop.stage));
    }
  }
  return last;
}

Moment SliceWriter::lastOutRead(int rank) const {
  Moment last = kAlways;
  for (const Hop& hop : slice_->out) {
    if (hop.from == rank) last = std::max(last, transfersOf(hop.stage));
  }
  return last;
}

void SliceWriter::write(const Slice& slice, std::uint32_t share) {
  slice_ = &slice;
  block_ = &shape().blocks[index(slice.block)];
  group_ = &shape().groups[index(block_->group)];
  roles_ = {group_->size()};
  piece_ = {static_cast<std::uint32_t>(slice.block), share, 0};
  held_.clear();
  parts_.clear();
  switch (slice.kind) {
    case SliceKind::Move:
      return writeMove();
    case SliceKind::SumAt:
      return writeSumAt();
    case SliceKind::SumEverywhere:
      return writeSumEverywhere();
  }
}

void SliceWriter::writeMove() {
  if (reduces(shape().collective)) impossible("a move in a collective that sums");
  const int source = rankAt(block_->source);
  passOn(input(source), kAlways, -1);
  lastSend_[piece_.block][piece_.share] = std::max(0, lastOutRead(source) / 2);
}

// Carries what `from` holds over the hops of `out`. `owner` takes a value that is not finished
// into its stage memory (-1: members take finished data into Output).
void SliceWriter::passOn(const Place& from, Moment since, int owner) {
  const int final = block_->destination < 0 ? -1 : rankAt(block_->destination);
  held_.clear();
  held_.push_back({-1, from, since});
  for (const Hop& hop : slice_->out) {
    const Place source = sendable(-1, hop);
    const Moment moment = transfersOf(hop.stage);
    if (find(-1, hop.to) != nullptr) impossible("a rank receives twice");
    Place to = output(hop.to);
    if (hop.to == owner) {
      to = slot(hop.to, roles_.carried(), consumedRing(), moment, stepsOf(hop.stage), from.width);
    } else if (owner >= 0 || !(final < 0 ? isMember(hop.to) : hop.to == final)) {
      to = slot(hop.to, roles_.carried(), options_.ring, moment, lastOutRead(hop.to), from.width);
    }
    writer_.cross(hop.stage, source, to);
    held_.push_back({-1, to, moment});
  }
}

// Brings the raw contributions to `at` into parts_. Returns the last phase in which one arrives.
// The contribution of the member at position `kept` stays in its slot there until `out` has read
// it.
int SliceWriter::gather(int at, int kept) {
  int phase = -1;
  for (const InHop& in : slice_->in) {
    if (in.hop.to == at) phase = std::max(phase, in.hop.stage);
  }
  for (const InHop& in : slice_->in) {
    if (slice_->kind == SliceKind::SumEverywhere && in.hop.to != at) continue;
    const Moment moment = transfersOf(in.hop.stage);
    if (!isMember(in.contributor)) impossible("a contribution of a rank that is no member");
    const int position = positionOf(in.contributor);
    const bool own = in.hop.from == in.contributor;
    const Place from = own ? input(in.contributor) : sendable(in.contributor, in.hop);
    const bool arrives = in.hop.to == at;
    const bool read = !arrives || position == kept;  // by a later hop
    Moment lastRead = arrives ? stepsOf(phase) : lastInRead(in.contributor, in.hop.to);
    if (position == kept) lastRead = std::max(lastRead, lastOutRead(at));
    const Place to =
        slot(in.hop.to, position, read ? options_.ring : consumedRing(), moment, lastRead);
    writer_.cross(in.hop.stage, from, to);
    if (arrives) parts_.push_back({position, to});
    if (!arrives) held_.push_back({in.contributor, to, moment});
  }
  return phase;
}

// `parts_` without the owner, and the owner last: the order of docs/schedules.md.
void SliceWriter::sum(int phase, Urgency urgency, const Place& to, const Place* owner,
                      int divisor) {
  std::sort(parts_.begin(), parts_.end(),
            [](const Part& a, const Part& b) { return a.position < b.position; });
  std::vector<Place> terms;
  for (std::size_t i = 0; i < parts_.size();) {
    const int block = parts_[i].position / kFoldBlock;
    terms_.clear();
    for (; i < parts_.size() && parts_[i].position / kFoldBlock == block; ++i) {
      terms_.push_back(parts_[i].place);
    }
    if (terms_.size() == 1 || group_->size() <= kFoldBlock) {
      terms.insert(terms.end(), terms_.begin(), terms_.end());
      continue;
    }
    const Moment moment = stepsOf(phase);
    const Place blockSum =
        slot(to.rank, roles_.foldBlock(block), consumedRing(), moment, moment, Width::Accumulator);
    writer_.reduce(phase, urgency, blockSum, terms_, 1);
    terms.push_back(blockSum);
  }
  if (owner != nullptr) terms.push_back(*owner);
  writer_.reduce(phase, urgency, to, terms, divisor);
}

void SliceWriter::writeSumAt() {
  if (!reduces(shape().collective)) impossible("a sum in a collective that moves");
  const int at = slice_->at;
  const int size = group_->size();
  const int owner = block_->destination < 0 ? -1 : rankAt(block_->destination);
  const bool raw = owner >= 0 && owner != at && size == 2;  // one contribution: nothing to sum
  const bool inPlace = owner < 0 && !isMember(at);
  const int kept = raw ? 1 - block_->destination : inPlace ? 0 : -1;
  const int phase = std::max(0, gather(at, kept));
  if (isMember(at) && at != owner) parts_.push_back({positionOf(at), input(at)});
  if (parts_.size() != static_cast<std::size_t>(owner < 0 ? size : size - 1)) {
    impossible("contributions are missing, or come twice, where they are summed");
  }
  if (owner >= 0 && at == owner) {
    const Place own = input(owner);
    return sum(phase, Urgency::Final, output(owner), &own, size);
  }
  Place result = parts_.front().place;
  if (owner < 0) {
    for (const Part& part : parts_) {
      if (part.position == 0) result = part.place;
    }
    if (!inPlace) result = output(at);
    sum(phase, Urgency::Feeds, result, nullptr, size);
  } else if (!raw) {
    result = slot(at, roles_.partial(), options_.ring, stepsOf(phase), lastOutRead(at),
                  Width::Accumulator);
    sum(phase, Urgency::Feeds, result, nullptr, 1);
  }
  const bool isOwnInput = raw && isMember(at);
  passOn(result, isOwnInput ? kAlways : raw ? transfersOf(phase) : stepsOf(phase), owner);
  if (owner >= 0) finishAt(owner);
}

// The owner adds its own contribution to what it has received.
void SliceWriter::finishAt(int owner) {
  const Held* held = find(-1, owner);
  if (held == nullptr) impossible("the sum does not reach its owner");
  const std::array<Place, 2> terms{held->place, input(owner)};
  writer_.reduce(held->since / 2, Urgency::Final, output(owner), terms, group_->size());
}

void SliceWriter::writeSumEverywhere() {
  if (shape().collective != Collective::AllReduce) impossible("only allreduce sums everywhere");
  for (const int rank : group_->ranks) {
    parts_.clear();
    const int phase = std::max(0, gather(rank, -1));
    parts_.push_back({positionOf(rank), input(rank)});
    if (parts_.size() != group_->ranks.size()) impossible("a member misses contributions");
    sum(phase, Urgency::Final, output(rank), nullptr, group_->size());
  }
}

}  // namespace byway
