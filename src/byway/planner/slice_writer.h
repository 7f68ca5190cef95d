// SPDX-License-Identifier: BSD-3-Clause
// Turns one slice after another into crossings and sums, with stage slots for what lies between.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "byway/planner/route_writer.h"
#include "byway/planner/routes.h"

namespace byway {

class SliceWriter {
 public:
  SliceWriter(RouteWriter& writer, const EmitOptions& options);

  // `share`: the slice's share of its block. Throws Error{Internal} when its route is impossible.
  void write(const Slice& slice, std::uint32_t share);

  // The last phase in which a block's source sends this share; 0 where nothing was sent.
  int lastSend(std::size_t block, std::size_t share) const { return lastSend_[block][share]; }

 private:
  // Data on its way: whose it is (-1 in `out`), where it lies, since when.
  struct Held {
    int contributor;
    Place place;
    Moment since;
  };
  struct Part {
    int position;
    Place place;
  };
  // What a slot of a lane is for. Raw contributions use their position in the group.
  struct Roles {
    int size;
    int carried() const { return size; }
    int partial() const { return size + 1; }
    int foldBlock(int b) const { return size + 2 + b; }
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  const Shape& shape() const { return writer_.shape(); }
  int rankAt(int position) const { return group_->ranks[index(position)]; }
  bool isMember(int rank) const { return memberships_[index(rank)].group == block_->group; }
  int positionOf(int rank) const { return memberships_[index(rank)].position; }
  Place input(int rank) const { return {Space::Input, Width::Element, rank, piece_}; }
  Place output(int rank) const { return {Space::Output, Width::Element, rank, piece_}; }
  int consumedRing() const;
  [[noreturn]] void impossible(const char* why) const;

  Place slot(int rank, int role, int ring, Moment write, Moment lastRead,
             Width width = Width::Element);
  const Held* find(int contributor, int rank) const;
  const Place& sendable(int contributor, const Hop& hop) const;
  Moment lastInRead(int contributor, int rank) const;
  Moment lastOutRead(int rank) const;

  void writeMove();
  void writeSumAt();
  void writeSumEverywhere();
  int gather(int at, int kept);
  void passOn(const Place& from, Moment since, int owner);
  void sum(int phase, Urgency urgency, const Place& to, const Place* owner, int divisor);
  void finishAt(int owner);

  RouteWriter& writer_;
  const EmitOptions& options_;
  std::vector<Membership> memberships_;     // by rank
  std::vector<std::vector<int>> lastSend_;  // by block and share
  // Of the slice being written:
  const Slice* slice_ = nullptr;
  const Block* block_ = nullptr;
  const Group* group_ = nullptr;
  Roles roles_{0};
  Piece piece_;
  std::vector<Held> held_;
  std::vector<Part> parts_;
  std::vector<Place> terms_;
};

}  // namespace byway
