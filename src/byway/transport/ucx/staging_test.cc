// SPDX-License-Identifier: BSD-3-Clause
#include "byway/transport/ucx/staging.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

namespace byway::ucx {
namespace {

TEST(Staging, PiecesFollowEachOther) {
  std::vector<std::byte> from(100);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i);
  const std::vector<ConstBuffer> pieces = {
      {&from[7], 3}, {nullptr, 0}, {nullptr, 2, MemoryKind::Phantom}, {&from[90], 10}};
  ASSERT_EQ(bytesOf(pieces), 15U);
  std::vector<std::byte> out(16, std::byte{0xee});
  gatherPieces(pieces, out.data());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(out[i], from[7 + i]);
  EXPECT_EQ(out[3], std::byte{0xee});
  EXPECT_EQ(out[4], std::byte{0xee});
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(out[5 + i], from[90 + i]);
  EXPECT_EQ(out[15], std::byte{0xee});
}

// Large messages are stored past the caches: pieces of every misalignment and remainder.
TEST(Staging, LargeMessagesToo) {
  constexpr std::size_t kBytes = std::size_t{6} << 20;
  std::vector<std::byte> from(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) from[i] = static_cast<std::byte>(i * 31 + i / 251);
  std::vector<ConstBuffer> pieces;
  for (std::size_t at = 0, i = 0; at < kBytes; ++i) {
    const std::size_t bytes = std::min(kBytes - at, i < 300 ? i : 70'001 + i);
    pieces.emplace_back(from.data() + at, bytes);
    at += bytes;
  }
  for (std::size_t shift = 0; shift < 3; ++shift) {
    std::vector<std::byte> out(shift + kBytes + 1, std::byte{0xee});
    gatherPieces(pieces, out.data() + shift);
    EXPECT_EQ(std::memcmp(out.data() + shift, from.data(), kBytes), 0) << shift;
    EXPECT_EQ(out.back(), std::byte{0xee});
  }
}

TEST(Staging, MemoryIsUsedAgain) {
  StagingPool pool;
  auto block = pool.take(1000);
  const std::byte* const address = block.memory.get();
  pool.give(std::move(block));
  EXPECT_EQ(pool.keptBytes(), 1000U);
  auto other = pool.take(499);  // less than half: not from that block
  EXPECT_NE(other.memory.get(), address);
  auto again = pool.take(500);
  EXPECT_EQ(again.memory.get(), address);
  EXPECT_EQ(again.bytes, 1000U);
  EXPECT_EQ(pool.keptBytes(), 0U);
}

TEST(Staging, TheSmallestThatFitsIsTaken) {
  StagingPool pool;
  for (const std::size_t bytes : {1500U, 1100U, 1200U}) pool.give(pool.take(bytes));
  // 1100 was taken from what 1500 had left, and so on: one block.
  EXPECT_EQ(pool.keptBytes(), 1500U);
  auto first = pool.take(1500);
  auto second = pool.take(1100);
  pool.give(std::move(first));
  pool.give(std::move(second));
  EXPECT_EQ(pool.take(1050).bytes, 1100U);
}

TEST(Staging, WhatIsKeptIsBounded) {
  StagingPool pool;
  constexpr std::size_t kQuarter = StagingPool::kKeptBytes / 4;
  std::vector<StagingPool::Block> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(pool.take(kQuarter));
  for (auto& block : blocks) pool.give(std::move(block));
  EXPECT_EQ(pool.keptBytes(), 4 * kQuarter);
  pool.give(pool.take(StagingPool::kKeptBytes + 1));
  EXPECT_EQ(pool.keptBytes(), 4 * kQuarter);
  pool.give({});
  EXPECT_EQ(pool.keptBytes(), 4 * kQuarter);
}

}  // namespace
}  // namespace byway::ucx
