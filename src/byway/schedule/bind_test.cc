// SPDX-License-Identifier: BSD-3-Clause
// Places and slots for exact counts; bind_cut_test.cc has the borders.
#include "byway/schedule/bind.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "byway/base/error.h"
#include "byway/schedule/schedule_test_util.h"

namespace byway {
namespace {

using namespace testing_util;  // NOLINT(google-build-using-namespace): the hand-written schedules

using Counts = std::vector<std::uint64_t>;

TEST(Bind, TwoBlocksWithEqualSharesAndOtherStarts) {
  const auto verified = verify(coalescedScatter());
  const Counts counts{100, 100, 100};
  const Counts starts{7, 1000, 0};
  const Counts totals{200, 1100, 100};
  const Binding b = bind(*verified, 2, {counts, starts, totals}, 4, 4);
  const std::uint64_t first = 64;  // 7 units of 16: 3.5 each, the earlier one more
  for (std::uint32_t block = 0; block < 3; ++block) {
    EXPECT_EQ(b.cell({block, 0, 0}).offset, starts[block]);
    EXPECT_EQ(b.cell({block, 0, 0}).count, first);
    EXPECT_EQ(b.cell({block, 1, 0}).offset, starts[block] + first);
    EXPECT_EQ(b.cell({block, 1, 0}).count, 100 - first);
  }
  EXPECT_EQ(b.inputStart, (Counts{0, 800, 5200}));
  EXPECT_EQ(b.outputStart, (Counts{Binding::kAbsent, 0, Binding::kAbsent}));
  EXPECT_EQ(b.inputBytes, 5600u);
  EXPECT_EQ(b.outputBytes, 4400u);
  // What follows a copied block is cut anew.
  const Counts unequal{100, 100, 40};
  const Binding c = bind(*verified, 2, {unequal, {}, {}}, 4, 4);
  EXPECT_EQ(c.cell({1, 1, 0}).count, 36u);
  EXPECT_EQ(c.cell({2, 0, 0}).count, 32u);
  EXPECT_EQ(c.cell({2, 1, 0}).count, 8u);
}

TEST(Bind, BlocksThatDifferAreNotCopied) {
  Schedule s = coalescedScatter();
  s.shape.blocks[0].shares = s.shape.blocks[1].shares = {kWhole / 4, kWhole / 4 * 3};
  s.shape.blocks[1].directShares = 2;
  s.shape.blocks[2].directShares = 2;
  const auto verified = verify(s);
  const Counts counts(3, 16);
  const Binding b = bind(*verified, 2, {counts, {}, {}}, 16, 16);  // four units a block
  EXPECT_EQ(b.cell({0, 0, 0}).count, 4u);
  EXPECT_EQ(b.cell({1, 0, 0}).count, 4u);
  EXPECT_EQ(b.cell({2, 0, 0}).count, 8u);
  const Counts few(3, 4);
  const Binding c = bind(*verified, 2, {few, {}, {}}, 16, 16);  // one
  EXPECT_EQ(c.cell({0, 0, 0}).count, 4u) << "the direct share takes it";
  EXPECT_EQ(c.cell({1, 1, 0}).count, 4u) << "the larger one does";
  EXPECT_EQ(c.cell({2, 0, 0}).count, 4u) << "the earlier one does";
}

// Rounds of a large call: together their cells hold every element once.
TEST(Bind, RoundsCoverEveryElementOnce) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const Schedule& s : {relayedPairs({{0, 1}, {2, 3}}, 4), coalescedScatter()}) {
    const auto verified = verify(s);
    const std::size_t blocks = s.shape.blocks.size();
    Counts totals;
    for (std::size_t b = 0; b < blocks; ++b) totals.push_back(random() % 3000);
    std::vector<std::vector<int>> covered;
    for (const auto total : totals) covered.emplace_back(total, 0);
    Counts starts(blocks, 0);
    while (starts != totals) {
      Counts counts;
      for (std::size_t b = 0; b < blocks; ++b) {
        counts.push_back(std::min<std::uint64_t>(totals[b] - starts[b], 64 * (random() % 8)));
      }
      const Binding binding = bind(*verified, 2, {counts, starts, totals}, 2, 4);
      for (std::uint32_t b = 0; b < blocks; ++b) {
        for (std::uint32_t share = 0; share < s.shape.blocks[b].shares.size(); ++share) {
          const CellRange& cell = binding.cell({b, share, 0});
          for (std::uint64_t i = 0; i < cell.count; ++i) ++covered[b].at(cell.offset + i);
        }
        starts[b] += counts[b];
      }
    }
    for (const auto& block : covered) {
      EXPECT_TRUE(std::all_of(block.begin(), block.end(), [](int times) { return times == 1; }));
    }
  }
}

void checkPlaces(const Binding& b, const Ref& ref) {
  std::uint64_t elements = 0;
  for (const Piece& p : b.schedule->schedule().piecesOf(ref)) {
    const Binding::Range range = b.range(ref, p);
    elements += b.cell(p).count;
    EXPECT_EQ(range.space, ref.space);
    EXPECT_EQ(range.bytes, b.cell(p).count * (ref.width == Width::Element ? 2 : 4));
    const std::uint64_t inBlock = 2 * b.cell(p).offset;
    std::uint64_t end = 0;
    switch (ref.space) {
      case Space::Input:
        EXPECT_EQ(range.offset, b.inputStart[p.block] + inBlock);
        end = b.inputBytes;
        break;
      case Space::Output:
        EXPECT_EQ(range.offset, b.outputStart[p.block] + inBlock);
        end = b.outputBytes;
        break;
      case Space::Stage:
        EXPECT_EQ(range.offset, b.slotStart[p.slot]);
        end = p.slot + 1 == b.slotStart.size() ? b.stageBytes : b.slotStart[p.slot + 1];
        break;
    }
    EXPECT_LE(range.offset + range.bytes, end);
  }
  EXPECT_EQ(b.elements(ref), elements);
  EXPECT_EQ(b.bytes(ref), elements * b.widthBytes(ref.width));
}

// Every piece lies within its buffer, and within its slot, which ends where the next one starts.
TEST(Bind, PlacesDoNotOverlap) {
  for (const Schedule& s : handWritten()) {
    SCOPED_TRACE(s.name);
    const auto verified = verify(s);
    for (const std::uint64_t count : {0u, 1u, 100u, 4099u}) {
      Counts counts;
      for (std::size_t b = 0; b < s.shape.blocks.size(); ++b) counts.push_back(count + 17 * b);
      for (int r = 0; r < s.shape.ranks; ++r) {
        const Binding b = bind(*verified, r, {counts, {}, {}}, 2, 4);
        ASSERT_EQ(b.slotStart.size(), verified->local(r).slots);
        for (const auto start : b.slotStart) EXPECT_EQ(start % 64, 0u);
        const auto mine = [&](const Ref& ref) {
          if (ref.rank == r) checkPlaces(b, ref);
        };
        for (const Transfer& t : s.transfers) {
          mine(t.from);
          mine(t.to);
        }
        for (const Step& step : s.steps) mine(step.to);
        for (const Ref& in : s.inputs) mine(in);
      }
    }
  }
}

// Against a walk over the pieces.
TEST(Bind, AnOperandIsOnePlaceWhereItsPiecesAdjoin) {
  const auto verified = verify(coalescedScatter());
  const Counts counts{100, 100, 100};
  for (const int rank : {0, 1, 2}) {
    const Binding b = bind(*verified, rank, {counts, {}, {}}, 4, 4);
    ASSERT_EQ(b.ops.size(), b.local->ops.size());
    const Schedule& s = verified->schedule();
    for (std::size_t i = 0; i < b.ops.size(); ++i) {
      const LocalOp& op = b.local->ops[i];
      if (op.kind != LocalKind::Send && op.kind != LocalKind::Recv) continue;
      const Transfer& t = s.transfers[op.index];
      const Ref& ref = op.kind == LocalKind::Send ? t.from : t.to;
      std::uint64_t bytes = 0, end = 0;
      bool adjoin = true;
      for (const Piece& piece : s.piecesOf(ref)) {
        const Binding::Range range = b.range(ref, piece);
        if (range.bytes == 0) continue;
        adjoin = adjoin && (bytes == 0 || range.offset == end);
        bytes += range.bytes;
        end = range.offset + range.bytes;
      }
      EXPECT_EQ(b.ops[i].at.bytes, bytes);
      EXPECT_EQ(b.ops[i].at.isOne, adjoin);
      if (adjoin && bytes > 0) {
        EXPECT_EQ(b.ops[i].at.offset + bytes, end);
      }
    }
  }
}

TEST(Bind, SlotsTakeNoMoreThanTheyMust) {
  // 3 shares of 4 units of 64 bytes through one slot: the largest has 2.
  const auto verified = verify(slotReuse(3));
  EXPECT_EQ(bind(*verified, 2, {Counts{64}, {}, {}}, 4, 4).stageBytes, 128u);
  EXPECT_EQ(bind(*verified, 0, {Counts{64}, {}, {}}, 4, 4).stageBytes, 0u);
  // A partial sum takes the accumulator's width, a raw contribution the element's.
  const auto partials = verify(reduceScatterByPartials());
  const Counts counts{64, 64, 64};
  EXPECT_EQ(bind(*partials, 3, {counts, {}, {}}, 2, 4).stageBytes, 6 * 128 + 3 * 256u);
  EXPECT_EQ(bind(*partials, 0, {counts, {}, {}}, 2, 4).stageBytes, 256u);
}

TEST(Bind, LargeCountsDoNotOverflow) {
  const auto verified = verify(relayedPairs({{0, 1}}, 3));
  const std::uint64_t count = (std::uint64_t{1} << 40) + 1;
  const Binding b = bind(*verified, 2, {Counts{count}, {}, {}}, 16, 16);
  EXPECT_EQ(b.cell({0, 0, 0}).count, (std::uint64_t{1} << 39) + 4);
  EXPECT_EQ(b.cell({0, 1, 0}).count, (std::uint64_t{1} << 39) - 3);
  EXPECT_EQ(b.stageBytes, 2 * ((std::uint64_t{1} << 43) - 48 + 48));
}

TEST(Bind, AsksForCountsOfEveryBlock) {
  const auto verified = verify(allGather(3));
  const Counts two{1, 2};
  const Counts three{1, 2, 3};
  EXPECT_THROW(bind(*verified, 0, {two, {}, {}}, 4, 4), Error);
  EXPECT_THROW(bind(*verified, 0, {three, two, {}}, 4, 4), Error);
  EXPECT_THROW(bind(*verified, 0, {three, {}, two}, 4, 4), Error);
  EXPECT_THROW(bind(*verified, 3, {three, {}, {}}, 4, 4), Error);
  EXPECT_NO_THROW(bind(*verified, 0, {three, {}, {}}, 4, 4));
}

}  // namespace
}  // namespace byway
