// SPDX-License-Identifier: BSD-3-Clause
#include "byway/transport/mapped/board.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "byway/base/error.h"

namespace byway {
namespace {

constexpr Seconds kSoon = 20;

std::vector<std::string> addressesOf(const std::vector<std::shared_ptr<Board>>& boards) {
  std::vector<std::string> all;
  for (const auto& board : boards) all.push_back(board ? board->address() : "");
  return all;
}

std::vector<std::shared_ptr<Board>> joined(int ranks) {
  std::vector<std::shared_ptr<Board>> boards;
  for (int r = 0; r < ranks; ++r) boards.push_back(Board::make(r, ranks));
  const auto addresses = addressesOf(boards);
  std::vector<std::thread> threads;
  for (auto& board : boards) {
    threads.emplace_back([&] { EXPECT_EQ(board->join(addresses, kSoon), Board::Reach::Memory); });
  }
  for (auto& thread : threads) thread.join();
  return boards;
}

TEST(Board, WhatOneRankPublishesAnotherReads) {
  const auto boards = joined(2);
  Publication& mine = boards[0]->publication(0, 7, 3);
  const Stamp stamp{1, 2, 3, 4, 5, 6};
  mine.setStamp(stamp, Publication::hashOf(stamp));
  mine.bytes = 100;
  mine.place = Publication::Place::Data;
  mine.offset = 64;
  std::memcpy(boards[0]->data(0, 7).data() + 64, "here", 5);
  mine.number.store(7, std::memory_order_release);
  const Publication& theirs = boards[1]->publication(0, 7, 3);
  ASSERT_EQ(theirs.number.load(std::memory_order_acquire), 7U);
  EXPECT_EQ(theirs.stamp(), (Stamp{1, 2, 3, 4, 5, 6}));
  EXPECT_STREQ(reinterpret_cast<const char*>(boards[1]->data(0, 7).data() + theirs.offset), "here");
  EXPECT_EQ(boards[1]->publication(0, 8, 3).number.load(), 0U);  // another slot
}

TEST(Board, ASlotIsTakenAgainOnceAllRanksAreDoneWithIt) {
  const auto boards = joined(3);
  constexpr std::uint64_t kLast = Board::kSlots;
  EXPECT_TRUE(boards[0]->isFree(kLast, false));
  EXPECT_FALSE(boards[0]->isFree(kLast + 1, false));
  EXPECT_TRUE(boards[0]->setDone(2));
  EXPECT_FALSE(boards[0]->setDone(2));
  boards[1]->setDone(1);
  EXPECT_FALSE(boards[0]->isFree(kLast + 1, false));
  boards[2]->setDone(1);
  EXPECT_TRUE(boards[0]->isFree(kLast + 1, false));
  EXPECT_FALSE(boards[0]->isFree(kLast + 2, false));
}

TEST(Board, DataIsTakenAgainSoonerThanSlots) {
  const auto boards = joined(2);
  constexpr std::uint64_t kLast = Board::kDataSlots;
  EXPECT_TRUE(boards[0]->isFree(kLast, true));
  EXPECT_FALSE(boards[0]->isFree(kLast + 1, true));
  EXPECT_TRUE(boards[0]->isFree(kLast + 1, false));
  EXPECT_EQ(boards[0]->data(0, 1).data(), boards[0]->data(0, 1 + kLast).data());
  EXPECT_NE(&boards[0]->publication(0, 1, 0), &boards[0]->publication(0, 1 + kLast, 0));
  boards[0]->setDone(1);
  boards[1]->setDone(1);
  EXPECT_TRUE(boards[0]->isFree(kLast + 1, true));
}

TEST(Board, DataBeginsBehindWhatTheSlotHadBefore) {
  const auto boards = joined(2);
  constexpr std::uint64_t kRoom = Board::kDataBytes / 2, kPart = 4096;
  std::uint64_t call = 3;
  for (std::uint64_t at = 0; at < kRoom; at += kPart, call += Board::kDataSlots) {
    ASSERT_EQ(boards[0]->dataStart(call, kPart), at);
  }
  EXPECT_EQ(boards[0]->dataStart(call, kPart), 0U);
  EXPECT_EQ(boards[0]->dataStart(call + 1, kPart), 0U) << "another slot";
  EXPECT_EQ(boards[0]->dataStart(call + Board::kDataSlots, kRoom), 0U) << "no room behind it";
  EXPECT_EQ(boards[0]->dataStart(call + 2 * Board::kDataSlots, Board::kDataBytes), 0U)
      << "all of it";
  const auto more = joined(8);  // which share the caches
  EXPECT_EQ(more[0]->dataStart(1, kRoom / 4), 0U);
  EXPECT_EQ(more[0]->dataStart(1 + Board::kDataSlots, kRoom / 4), 0U);
}

TEST(Board, PlacesInTheRingAreFreeOnceTheirReadersAreDone) {
  const auto boards = joined(2);
  constexpr std::uint64_t kPart = Board::kRingBytes / 4, kReader = 2;
  std::vector<Publication*> lines;
  for (std::uint32_t i = 0; i < 6; ++i) lines.push_back(&boards[0]->publication(0, 1, i));
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(boards[0]->takeRing(kPart - 1, *lines[i], kReader), i * kPart);
  }
  EXPECT_EQ(boards[0]->takeRing(1, *lines[4], kReader), std::nullopt);
  lines[1]->taken.store(kReader);  // not the oldest
  boards[0]->reclaimRing();
  EXPECT_EQ(boards[0]->takeRing(1, *lines[4], kReader), std::nullopt);
  lines[0]->taken.store(kReader);
  boards[0]->reclaimRing();
  lines[0]->taken.store(0);  // written again: its place is free all the same
  EXPECT_EQ(boards[0]->takeRing(kPart, *lines[4], kReader), 0U);
  EXPECT_EQ(boards[0]->takeRing(2 * kPart, *lines[5], kReader), std::nullopt);
  EXPECT_EQ(boards[0]->takeRing(kPart, *lines[5], kReader), kPart);
  EXPECT_EQ(boards[1]->takeRing(Board::kRingBytes + 1, *lines[5], kReader), std::nullopt);
}

TEST(Board, TheRingGoesOnWhereItWas) {
  const auto boards = joined(2);
  constexpr std::uint64_t kPart = Board::kRingBytes / 8, kReader = 2;
  Publication& line = boards[0]->publication(0, 1, 0);
  for (int turn = 0; turn < 3; ++turn) {
    // Half of it is enough for two ranks.
    for (std::uint64_t at = 0; at < Board::kRingBytes / 2; at += kPart) {
      line.taken.store(0);
      ASSERT_EQ(boards[0]->takeRing(kPart, line, kReader), at);
      line.taken.store(kReader);
      boards[0]->reclaimRing();
    }
  }
  // All of it where it is in use.
  line.taken.store(0);
  for (std::uint64_t at = 0; at < Board::kRingBytes; at += kPart) {
    ASSERT_EQ(boards[0]->takeRing(kPart, line, kReader), at);
  }
  EXPECT_EQ(boards[0]->takeRing(kPart, line, kReader), std::nullopt);
}

TEST(Board, ASleeperIsWokenOnce) {
  const auto boards = joined(2);
  EXPECT_EQ(boards[1]->sleepOf(0), Board::Sleep::No);
  boards[0]->setSleep(Board::Sleep::ForSpace, true);
  EXPECT_EQ(boards[1]->sleepOf(0), Board::Sleep::ForSpace);
  EXPECT_TRUE(boards[1]->endSleepOf(0));  // it sleeps elsewhere, and is to be woken there
  EXPECT_FALSE(boards[1]->endSleepOf(0));
  boards[0]->setSleep(Board::Sleep::ForData);
  std::thread other([&] { EXPECT_FALSE(boards[1]->endSleepOf(0)); });
  boards[0]->sleep(kSoon);
  other.join();
  EXPECT_EQ(boards[1]->sleepOf(0), Board::Sleep::No);
  boards[0]->sleep(kSoon);  // does not sleep
}

TEST(Board, ARankWithoutAPartMeansThatNobodyUsesOne) {
  std::vector<std::shared_ptr<Board>> boards{Board::make(0, 3), Board::make(1, 3), nullptr};
  const auto addresses = addressesOf(boards);
  std::thread other([&] { EXPECT_EQ(boards[1]->join(addresses, kSoon), Board::Reach::None); });
  EXPECT_EQ(boards[0]->join(addresses, kSoon), Board::Reach::None);
  other.join();
}

TEST(Board, AddressesThatNameNoBoardAreNotMapped) {
  for (const std::string& wrong : {std::string("board1:1:0:1:1"), std::string("nonsense"),
                                   "board1:" + std::to_string(getpid()) + ":0:abcd:1000"}) {
    const auto board = Board::make(0, 2);
    const std::vector<std::string> addresses{board->address(), wrong};
    EXPECT_EQ(board->join(addresses, kSoon), Board::Reach::None) << wrong;
  }
}

TEST(Board, ARankThatSaysNothingIsATimeout) {
  const std::vector<std::shared_ptr<Board>> boards{Board::make(0, 2), Board::make(1, 2)};
  try {
    boards[0]->join(addressesOf(boards), 0.01);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Timeout);
    EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos) << error.what();
  }
}

TEST(Board, TooManyRanksHaveNone) { EXPECT_EQ(Board::make(0, Board::kMostRanks + 1), nullptr); }

// Two processes: the child maps the parent's part, reads its memory, and is killed; nothing is left
// that has a name.
TEST(Board, ProcessesReadEachOthersMemory) {
  const auto mine = Board::make(0, 2);
  int fromChild[2], toChild[2];
  ASSERT_EQ(pipe(fromChild), 0);
  ASSERT_EQ(pipe(toChild), 0);
  char secret[] = "of the parent";
  const pid_t child = fork();
  if (child == 0) {
    const auto own = Board::make(1, 2);
    char text[256] = {};
    own->address().copy(text, sizeof text - 1);
    bool good = write(fromChild[1], text, sizeof text) == sizeof text;
    good = good && read(toChild[0], text, sizeof text) == sizeof text;
    const std::vector<std::string> addresses{text, own->address()};
    good = good && own->join(addresses, kSoon) == Board::Reach::Memory;
    char copy[sizeof secret] = {};
    const auto address = reinterpret_cast<std::uintptr_t>(secret);
    good = good && own->read(0, address, copy, sizeof copy) && std::strcmp(copy, secret) == 0;
    good = good && !own->read(0, 64, copy, sizeof copy);  // nothing there
    own->publication(1, 1, 0).number.store(good ? 1 : 2, std::memory_order_release);
    pause();
    _exit(0);
  }
  char text[256] = {};
  ASSERT_EQ(read(fromChild[0], text, sizeof text), static_cast<ssize_t>(sizeof text));
  const std::vector<std::string> addresses{mine->address(), text};
  mine->address().copy(text, sizeof text - 1);
  text[mine->address().size()] = '\0';
  ASSERT_EQ(write(toChild[1], text, sizeof text), static_cast<ssize_t>(sizeof text));
  EXPECT_EQ(mine->join(addresses, kSoon), Board::Reach::Memory);
  const auto& word = mine->publication(1, 1, 0).number;
  while (word.load(std::memory_order_acquire) == 0 && waitpid(child, nullptr, WNOHANG) == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(word.load(), 1U);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(word.load(), 1U);  // what it published stays
  for (const int end : {fromChild[0], fromChild[1], toChild[0], toChild[1]}) close(end);
}

}  // namespace
}  // namespace byway
