// SPDX-License-Identifier: BSD-3-Clause
#include "byway/schedule/bind.h"

#include <algorithm>
#include <numeric>

#include "byway/base/error.h"

namespace byway {
namespace {

constexpr std::size_t kAlignBytes = 64;

// floor(share * units / kWhole) and what is left of it, without overflow.
struct Split {
  std::uint64_t units, rest;
};
Split split(std::uint64_t share, std::uint64_t units) {
  const auto product = static_cast<unsigned __int128>(share) * units;
  return {static_cast<std::uint64_t>(product >> 32),
          static_cast<std::uint64_t>(product & 0xffffffffU)};
}

std::uint64_t roundUp(std::uint64_t bytes) {
  return (bytes + kAlignBytes - 1) / kAlignBytes * kAlignBytes;
}

// Hands out `units` by largest remainder; ties go to the earlier share.
void largestRemainder(std::span<const std::uint64_t> shares, std::uint64_t whole,
                      std::uint64_t units, std::span<CellRange> out) {
  thread_local std::vector<std::pair<std::uint64_t, std::uint32_t>> rests;
  rests.clear();
  std::uint64_t given = 0;
  for (std::uint32_t i = 0; i < shares.size(); ++i) {
    if (whole == kWhole) {
      const Split s = split(shares[i], units);
      out[i].count = s.units;
      rests.emplace_back(~s.rest, i);  // complemented: ascending order is largest first
    } else {
      const auto product = static_cast<unsigned __int128>(shares[i]) * units;
      out[i].count = static_cast<std::uint64_t>(product / whole);
      rests.emplace_back(~static_cast<std::uint64_t>(product % whole), i);
    }
    given += out[i].count;
  }
  const auto missing = static_cast<std::ptrdiff_t>(units - given);
  if (missing > 0) {
    if (missing < static_cast<std::ptrdiff_t>(rests.size())) {
      std::nth_element(rests.begin(), rests.begin() + missing, rests.end());
    }
    for (std::ptrdiff_t i = 0; i < missing; ++i) {
      ++out[rests[static_cast<std::size_t>(i)].second].count;
    }
  }
}

}  // namespace

void cutBlock(std::span<const std::uint64_t> shares, int directShares, std::uint64_t count,
              std::size_t elementBytes, std::span<CellRange> out) {
  const std::uint64_t unit = std::max<std::uint64_t>(1, kAlignBytes / elementBytes);
  const std::uint64_t units = count / unit + (count % unit != 0 ? 1 : 0);
  const auto direct = static_cast<std::size_t>(directShares);
  if (units < shares.size() && direct > 0) {
    const auto whole =
        std::accumulate(shares.begin(), shares.begin() + directShares, std::uint64_t{0});
    std::fill(out.begin(), out.end(), CellRange{});
    if (whole > 0)
      largestRemainder(shares.first(direct), whole, units, out.first(direct));
    else
      out[0].count = units;
  } else {
    largestRemainder(shares, kWhole, units, out);
  }
  std::uint64_t offset = 0;
  for (CellRange& range : out) {
    range.offset = offset;
    range.count = std::min(range.count * unit, count - offset);
    offset += range.count;
  }
}

namespace {

void cutBlocks(Binding& b, const Schedule& s, const BindCounts& counts) {
  std::uint32_t cells = 0;
  for (const Block& block : s.shape.blocks) {
    b.cellBase.push_back(cells);
    cells += static_cast<std::uint32_t>(block.shares.size());
  }
  b.cells.resize(cells);
  const Block* previous = nullptr;
  std::size_t previousIndex = 0;
  for (std::size_t i = 0; i < s.shape.blocks.size(); ++i) {
    const Block& block = s.shape.blocks[i];
    const std::span<CellRange> mine(b.cells.data() + b.cellBase[i], block.shares.size());
    const std::uint64_t start = counts.blockStarts.empty() ? 0 : counts.blockStarts[i];
    const bool same =
        previous != nullptr && counts.blockCounts[i] == counts.blockCounts[previousIndex] &&
        block.directShares == previous->directShares && block.shares == previous->shares;
    if (same) {
      const std::uint64_t shift =
          start - (counts.blockStarts.empty() ? 0 : counts.blockStarts[previousIndex]);
      const CellRange* source = b.cells.data() + b.cellBase[previousIndex];
      for (std::size_t c = 0; c < mine.size(); ++c) {
        mine[c] = {source[c].offset + shift, source[c].count};
      }
      continue;
    }
    cutBlock(block.shares, block.directShares, counts.blockCounts[i], b.elementBytes, mine);
    for (CellRange& range : mine) range.offset += start;
    previous = &block;
    previousIndex = i;
  }
}

std::uint64_t placeBlocks(const std::vector<int>& blocks, std::span<const std::uint64_t> totals,
                          std::size_t elementBytes, std::vector<std::uint64_t>& starts) {
  std::uint64_t offset = 0;
  for (const int block : blocks) {
    starts[static_cast<std::size_t>(block)] = offset;
    offset += totals[static_cast<std::size_t>(block)] * elementBytes;
  }
  return offset;
}

void placeSlots(Binding& b) {
  std::vector<std::uint64_t> size(b.local->slots, 0);
  for (const LocalProgram::SlotUse& use : b.local->slotUses) {
    const std::uint64_t bytes =
        b.cells[b.cellBase[use.block] + use.share].count * b.widthBytes(use.width);
    size[use.slot] = std::max(size[use.slot], bytes);
  }
  b.slotStart.reserve(size.size());
  for (const std::uint64_t bytes : size) {
    b.slotStart.push_back(b.stageBytes);
    b.stageBytes += roundUp(bytes);
  }
}

void placeOps(Binding& b, const Schedule& s) {
  b.ops.reserve(b.local->ops.size());
  std::size_t inputs = 0;
  for (const LocalOp& op : b.local->ops) {
    const bool isStep = op.kind == LocalKind::Reduce || op.kind == LocalKind::Copy;
    if (isStep) inputs += s.steps[op.index].inputCount;
  }
  b.inputPlaces.reserve(inputs);
  for (const LocalOp& op : b.local->ops) {
    const bool isStep = op.kind == LocalKind::Reduce || op.kind == LocalKind::Copy;
    const Ref& ref = isStep                       ? s.steps[op.index].to
                     : op.kind == LocalKind::Send ? s.transfers[op.index].from
                                                  : s.transfers[op.index].to;
    b.ops.push_back({b.place(ref), static_cast<std::uint32_t>(b.inputPlaces.size())});
    if (!isStep) continue;
    for (const Ref& input : s.inputsOf(s.steps[op.index])) {
      b.inputPlaces.push_back(b.place(input));
    }
  }
}

}  // namespace

Binding bind(const VerifiedSchedule& schedule, int rank, const BindCounts& counts,
             std::size_t elementBytes, std::size_t accumulatorBytes) {
  const Schedule& s = schedule.schedule();
  const std::size_t blocks = s.shape.blocks.size();
  BYWAY_ASSERT(counts.blockCounts.size() == blocks && elementBytes > 0 && accumulatorBytes > 0);
  BYWAY_ASSERT(counts.blockStarts.empty() || counts.blockStarts.size() == blocks);
  BYWAY_ASSERT(counts.blockTotals.empty() || counts.blockTotals.size() == blocks);
  Binding b;
  b.schedule = &schedule;
  b.local = &schedule.local(rank);
  b.elementBytes = elementBytes;
  b.accumulatorBytes = accumulatorBytes;
  cutBlocks(b, s, counts);
  const auto totals = counts.blockTotals.empty() ? counts.blockCounts : counts.blockTotals;
  b.inputStart.assign(blocks, Binding::kAbsent);
  b.outputStart.assign(blocks, Binding::kAbsent);
  b.inputBytes = placeBlocks(inputBlocks(s.shape, rank), totals, elementBytes, b.inputStart);
  b.outputBytes = placeBlocks(outputBlocks(s.shape, rank), totals, elementBytes, b.outputStart);
  placeSlots(b);
  placeOps(b, s);
  return b;
}

Binding::Range Binding::range(const Ref& ref, const Piece& piece) const {
  const CellRange& c = cell(piece);
  const std::uint64_t bytes = c.count * widthBytes(ref.width);
  switch (ref.space) {
    case Space::Input:
      return {ref.space, inputStart[piece.block] + c.offset * elementBytes, bytes};
    case Space::Output:
      return {ref.space, outputStart[piece.block] + c.offset * elementBytes, bytes};
    case Space::Stage:
      return {ref.space, slotStart[piece.slot], bytes};
  }
  return {};
}

Binding::Place Binding::place(const Ref& ref) const {
  Place all{ref.space, true, 0, 0};
  const std::uint64_t width = widthBytes(ref.width);
  const bool isStage = ref.space == Space::Stage;
  const std::uint64_t* const starts = isStage                     ? slotStart.data()
                                      : ref.space == Space::Input ? inputStart.data()
                                                                  : outputStart.data();
  for (const Piece& piece : schedule->schedule().piecesOf(ref)) {
    const CellRange& c = cell(piece);
    if (c.count == 0) continue;
    const std::uint64_t offset =
        isStage ? starts[piece.slot] : starts[piece.block] + c.offset * elementBytes;
    if (all.bytes == 0) all.offset = offset;
    all.isOne = all.isOne && all.offset + all.bytes == offset;
    all.bytes += c.count * width;
  }
  return all;
}

std::uint64_t Binding::elements(const Ref& ref) const {
  std::uint64_t sum = 0;
  for (const Piece& piece : schedule->schedule().piecesOf(ref)) sum += cell(piece).count;
  return sum;
}

std::vector<std::uint64_t> publishedBytes(const Binding& binding, std::uint32_t first,
                                          std::uint32_t end) {
  std::vector<std::uint64_t> all;
  std::vector<bool> seen(binding.local->publications, false);
  for (std::size_t i = 0; i < binding.ops.size(); ++i) {
    const LocalOp& op = binding.local->ops[i];
    if (op.kind != LocalKind::Send || op.publication == kNoOp) continue;
    if (op.index < first || op.index >= end || seen[op.publication]) continue;
    seen[op.publication] = true;
    all.push_back(binding.ops[i].at.bytes);
  }
  return all;
}

}  // namespace byway
