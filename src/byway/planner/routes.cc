// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/routes.h"

#include <span>
#include <utility>

#include "byway/planner/block_shares.h"
#include "byway/planner/route_writer.h"
#include "byway/planner/slice_writer.h"

namespace byway {
namespace {

// What a member keeps for itself: each share is copied once its last send has left, since in the
// dependence graph Input and Output are one place.
void writeOwnBlocks(RouteWriter& writer, const SliceWriter& slices) {
  const Shape& shape = writer.shape();
  const bool mayAlias = shape.collective != Collective::AllToAll;
  for (std::size_t b = 0; b < shape.blocks.size(); ++b) {
    const Block& block = shape.blocks[b];
    if (block.source < 0 || (block.destination >= 0 && block.destination != block.source)) continue;
    const int rank = shape.groups[static_cast<std::size_t>(block.group)]
                         .ranks[static_cast<std::size_t>(block.source)];
    for (std::size_t s = 0; s < block.shares.size(); ++s) {
      const Piece piece{static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(s), 0};
      writer.copyOwn(slices.lastSend(b, s), rank, piece, mayAlias);
    }
  }
}

// A group of one still finishes its value (AVG and PREMUL_SUM are no plain copies).
void writeLonelySums(RouteWriter& writer) {
  const Shape& shape = writer.shape();
  if (!reduces(shape.collective)) return;
  for (std::size_t b = 0; b < shape.blocks.size(); ++b) {
    const Group& group = shape.groups[static_cast<std::size_t>(shape.blocks[b].group)];
    if (group.size() != 1) continue;
    const Piece piece{static_cast<std::uint32_t>(b), 0, 0};
    const Place own{Space::Input, Width::Element, group.ranks[0], piece};
    writer.reduce(0, Urgency::Local, {Space::Output, Width::Element, group.ranks[0], piece},
                  std::span(&own, 1), 1);
  }
}

}  // namespace

Schedule emit(Shape shape, const std::vector<Slice>& slices, const EmitOptions& options) {
  const std::vector<std::uint32_t> shares = shareBlocks(shape, slices);
  RouteWriter writer(std::move(shape), options.name);
  SliceWriter sliceWriter(writer, options);
  for (std::size_t s = 0; s < slices.size(); ++s) {
    if (shares[s] != kDropped) sliceWriter.write(slices[s], shares[s]);
  }
  writeOwnBlocks(writer, sliceWriter);
  writeLonelySums(writer);
  return std::move(writer).finish(options.protocol);
}

}  // namespace byway
