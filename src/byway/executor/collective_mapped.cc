// SPDX-License-Identifier: BSD-3-Clause
// Mapped transfers of a collective operation: what is sent is published on the board once, and what
// is received is copied from there, or read there by the sum that it is for (docs/host.md).
#include <algorithm>
#include <cstring>

#include "byway/base/copy.h"
#include "byway/base/cores.h"
#include "byway/base/fence.h"
#include "byway/executor/collective_round.h"

namespace byway {
namespace {

// A publication up to this size is copied into the slot: cheaper for both sides than a read from
// another process's memory, which costs a system call and something for each page.
constexpr std::uint64_t kCopyBytes = kMappedSlotBytes;
constexpr std::size_t kMostPieces = 4;  // of memory that a publication lists; more are gathered
constexpr std::uint64_t kReserve = Board::kPublications * kMostPieces * sizeof(PublishedPiece);
static_assert(kMappedRingBytes == Board::kRingBytes);
static_assert(kMostPublications <= Board::kPublications && kReserve < Board::kDataBytes / 4);
// Of a copy from another process's memory before it gives way.
constexpr std::uint64_t kReadBytes = std::uint64_t{512} << 10;
constexpr std::uint64_t kLine = 64;
// A line comes back from another core within so many of the shortest calls.
constexpr std::uint64_t kLinesAhead = 4;
constexpr std::uint64_t kAnyBytes = ~std::uint64_t{0};

std::uint64_t bit(int rank) { return std::uint64_t{1} << static_cast<unsigned>(rank); }

void gather(const std::vector<Buffer>& from, std::byte* to, bool streamed = false) {
  for (const Buffer& buffer : from) {
    (streamed && buffer.bytes >= StreamChoices::kLeast ? streamPart : copy)(to, buffer.address,
                                                                            buffer.bytes);
    to += buffer.bytes;
  }
  if (streamed) endStream();
}

// Where a mapped receive of call `number` finds what its sender published.
Publication& awaitedLine(Board& board, const Schedule& s, const LocalOp& recv,
                         std::uint64_t number) {
  return board.publication(s.transfers[recv.index].from.rank, number, recv.publication);
}

std::uint64_t inLines(std::uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Of what a rank publishes for transfers [first, end), without what is larger than `most`.
std::uint64_t linesPublished(const Binding& bound, std::uint32_t first, std::uint32_t end,
                             std::uint64_t most) {
  std::uint64_t bytes = 0;
  for (const std::uint64_t one : publishedBytes(bound, first, end)) {
    if (one <= most) bytes += inLines(one);
  }
  return bytes;
}

}  // namespace

// To the board, where the readers of earlier calls may have what is overwritten in their caches.
void CollectiveOperation::writeToBoard(const std::vector<Buffer>& from, std::uint64_t bytes,
                                       std::byte* to) {
  if (bytes < StreamChoices::kLeast) return gather(from, to);
  channel_.streamChoice(bytes).run(bytes, channel_.transport().clock(),
                                   [&](bool streamed) { gather(from, to, streamed); });
}

void CollectiveOperation::issueMapped(Round& round, std::uint32_t index) {
  const LocalOp& op = round.bound->local->ops[index];
  if (round.published.empty() && round.located.empty()) {
    round.located.resize(round.state.size());
    const std::uint32_t numbers = round.bound->local->publications;
    round.published.assign(numbers, Published::No);
    round.ringUse.assign(numbers, {});
    const bool isAllData =
        request_.schedule->publishesCopies() || channel_.board()->reach() != Board::Reach::Memory;
    round.dataNeed = linesPublished(*round.bound, 0, kNoOp, isAllData ? kAnyBytes : kCopyBytes);
  }
  // What has no bytes is published, too: so ranks that call different things find out.
  if (op.kind == LocalKind::Recv) {
    round.toRead.push_back(index);
  } else if (publish(round, index)) {
    afterPublishing(round, index);
  } else {
    round.toPublish.push_back(index);
  }
}

// False while the slot is in use by an earlier call. Once for all its readers.
bool CollectiveOperation::publish(Round& round, std::uint32_t index) {
  const LocalOp& op = round.bound->local->ops[index];
  auto& published = round.published[op.publication];
  if (published == Published::No) {
    Board& board = *channel_.board();
    const std::uint64_t bytes = round.bound->ops[index].at.bytes;
    if (!board.isFree(number(), bytes > Publication::kSmallBytes)) return false;
    Publication& line = board.publication(channel_.rank(), number(), op.publication);
    line.bytes = bytes;
    RingUse& use = round.ringUse[op.publication];
    if (!use.isKnown) {
      use = {true, mayUseRing(round, index), 0};
      if (use.isUsed) use.readers = readersOf(round, op);
    }
    if (use.isUsed) {
      letReadersMark(line);
      const auto offset = board.takeRing(line.bytes, line, use.readers);
      if (!offset) return false;
      line.place = Publication::Place::Ring;
      line.offset = *offset;
      writeToBoard(buffersOf(round, index), line.bytes,
                   board.ring(channel_.rank()).data() + *offset);
      published = Published::InRing;
    } else {
      published = writePublication(round, line, index);
    }
    if (request_.ownCounts) {
      const Stamp mine = messageStamp(keyOf(op.index, channel_.rank()));
      line.setStamp(mine, Publication::hashOf(mine));
    } else {
      line.setStamp(stamp(), stampHash_);
    }
    line.number.store(number(), std::memory_order_release);
    // A later call's line is still with those who read it many calls ago.
    prefetchForWrite(&board.publication(channel_.rank(), number() + kLinesAhead, op.publication));
    channel_.broughtData();
  }
  return true;
}

void CollectiveOperation::afterPublishing(Round& round, std::uint32_t index) {
  const Published published = round.published[round.bound->local->ops[index].publication];
  // What is a copy outside of the board is kept until the last reader has it. What is in the ring
  // could be overwritten here at once, but the next pieces are to wait for its readers.
  if (published != Published::InSlot) round.toBeTaken.push_back(index);
  if (published == Published::InSlot || published == Published::InCopy) finishOp(round, index);
}

// For what its readers mark in the line's second half, which others do not touch.
void CollectiveOperation::letReadersMark(Publication& line) {
  channel_.board()->reclaimRing();
  line.taken.store(0, std::memory_order_relaxed);
  line.isWithdrawn.store(0, std::memory_order_relaxed);
}

std::uint64_t CollectiveOperation::readersOf(const Round& round, const LocalOp& of) const {
  std::uint64_t readers = 0;
  for (const LocalOp& op : round.bound->local->ops) {
    if (op.kind != LocalKind::Send || op.publication != of.publication) continue;
    readers |= bit(request_.schedule->schedule().transfers[op.index].to.rank);
  }
  return readers;
}

// Whether a publication goes through the ring: it is too large for a slot, or there are too many,
// and the ring holds as many of its phase's as may be under way at once (kLinkWindow), and one more
// for what is lost at its end.
// So a call never waits for itself: there is room as soon as earlier calls are over.
bool CollectiveOperation::mayUseRing(Round& round, std::uint32_t index) const {
  const Binding& b = *round.bound;
  const std::uint64_t bytes = b.ops[index].at.bytes;
  if (request_.schedule->publishesCopies() || bytes <= Publication::kSmallBytes) return false;
  if (bytes <= kCopyBytes && round.dataNeed + kReserve <= Board::kDataBytes) return false;
  const Schedule& s = request_.schedule->schedule();
  const std::uint32_t transfer = b.local->ops[index].index;
  const auto phase = std::upper_bound(
      s.phases.begin(), s.phases.end(), transfer,
      [](std::uint32_t t, const Phase& p) { return t < p.firstTransfer + p.transferCount; });
  const std::uint32_t end = phase->firstTransfer + phase->transferCount;
  if (round.ringPhaseEnd != end) {
    round.ringPhaseEnd = end;
    round.ringHoldsPhase =
        linesPublished(b, phase->firstTransfer, end, kAnyBytes) <= kMappedPhaseBytes;
  }
  return round.ringHoldsPhase;
}

CollectiveOperation::Published CollectiveOperation::writePublication(Round& round,
                                                                     Publication& line,
                                                                     std::uint32_t index) {
  const std::uint64_t bytes = line.bytes;
  if (bytes <= Publication::kSmallBytes) {
    line.place = Publication::Place::Here;
    if (const std::byte* const from = addressOf(round, round.bound->ops[index].at))
      copy(line.small, from, bytes);
    else
      gather(buffersOf(round, index), line.small);
    return Published::InSlot;
  }
  const std::vector<Buffer>& buffers = buffersOf(round, index);
  const auto slot = channel_.board()->data(channel_.rank(), number());
  if (!round.dataStart) round.dataStart = channel_.board()->dataStart(number(), round.dataNeed);
  const auto reserve = [&](std::uint64_t size) {
    line.offset = *round.dataStart + round.dataUsed;
    round.dataUsed += inLines(size);
    return slot.data() + line.offset;
  };
  const bool copies = request_.schedule->publishesCopies();
  Published published = Published::InSlot;
  if (*round.dataStart + round.dataUsed + bytes + kLine + kReserve <= slot.size() &&
      (copies || bytes <= kCopyBytes || channel_.board()->reach() != Board::Reach::Memory)) {
    line.place = Publication::Place::Data;
    writeToBoard(buffers, bytes, reserve(bytes));
  } else {
    letReadersMark(line);
    line.place = Publication::Place::Memory;
    published = Published::InMemory;
    std::vector<PublishedPiece> pieces;
    if (copies || buffers.size() > kMostPieces) {
      published = Published::InCopy;
      auto& copy = round.copies.emplace_back(bytes);
      gather(buffers, copy.data());
      pieces.push_back({reinterpret_cast<std::uintptr_t>(copy.data()), bytes});
    } else {
      for (const Buffer& buffer : buffers) {
        pieces.push_back({reinterpret_cast<std::uintptr_t>(buffer.address), buffer.bytes});
      }
    }
    line.pieces = static_cast<std::uint32_t>(pieces.size());
    std::memcpy(reserve(pieces.size() * sizeof(PublishedPiece)), pieces.data(),
                pieces.size() * sizeof(PublishedPiece));
  }
  return published;
}

bool CollectiveOperation::advanceMapped(Round& round) {
  bool did = false;
  const auto keep = [&](std::vector<std::uint32_t>& list, const auto& isOver) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::uint32_t index = list[i];
      if (!round.isStuck && isOver(index)) {
        did = true;
      } else {
        list[kept++] = index;
      }
    }
    list.resize(kept);
  };
  if (!round.toPublish.empty()) {
    keep(round.toPublish, [&](std::uint32_t index) {
      if (!publish(round, index)) return false;
      afterPublishing(round, index);
      return true;
    });
  }
  if (!round.toRead.empty()) {
    keep(round.toRead, [&](std::uint32_t index) {
      if (!look(round, index)) return false;
      finishOp(round, index);
      return true;
    });
    if (!round.isStuck && !round.toRead.empty()) did = fetch(round, round.toRead[0]) || did;
  }
  if (round.toBeTaken.empty()) return did;
  keep(round.toBeTaken, [&](std::uint32_t index) {
    const LocalOp& op = round.bound->local->ops[index];
    const int reader = request_.schedule->schedule().transfers[op.index].to.rank;
    auto& line = channel_.board()->publication(channel_.rank(), number(), op.publication);
    if ((line.taken.load(std::memory_order_acquire) & bit(reader)) == 0) {
      if (!channel_.transport().isLost(channel_.peer(reader))) return false;
      if ((line.taken.load(std::memory_order_acquire) & bit(reader)) == 0) {
        failMapped(round, index, Outcome::PeerLost);
        return false;
      }
    }
    if (round.published[op.publication] != Published::InCopy) finishOp(round, index);
    return true;
  });
  return did;
}

// For about half a microsecond in a call, where no rank waits for this core: what comes within that
// time is had sooner than by a wait that begins anew.
void CollectiveOperation::awaitPublication(Round& round, std::uint32_t index) {
  constexpr unsigned kLooks = 16;
  Board& board = *channel_.board();
  if (board.ranks() > board.cores()) return;
  const Publication& line =
      awaitedLine(board, request_.schedule->schedule(), round.bound->local->ops[index], number());
  while (round.looks < kLooks && line.number.load(std::memory_order_acquire) != number()) {
    ++round.looks;
    pauseCore();
  }
}

// Whether a receive is over: its publication is there and is all in the board.
bool CollectiveOperation::look(Round& round, std::uint32_t index) {
  Located& at = round.located[index];
  if (at.line != nullptr) return false;  // in another rank's memory: fetch()
  const LocalOp& op = round.bound->local->ops[index];
  const Schedule& s = request_.schedule->schedule();
  Board& board = *channel_.board();
  const int from = s.transfers[op.index].from.rank;
  Publication& line = awaitedLine(board, s, op, number());
  if (line.number.load(std::memory_order_acquire) != number()) {
    round.hasWaited = true;
    if (!channel_.transport().isLost(channel_.peer(from))) return false;
    // What it published before it ended is here.
    if (line.number.load(std::memory_order_acquire) != number()) {
      failMapped(round, index, Outcome::PeerLost);
      return false;
    }
  }
  // Whoever only reads, and found this line at once, is behind: later ones may be there already.
  if (round.bound->local->publications == 0 && !round.hasWaited)
    prefetchForRead(&board.publication(from, number() + kLinesAhead, op.publication));
  const MatchKey key = keyOf(op.index, from);
  const std::uint64_t hash =
      request_.ownCounts ? Publication::hashOf(messageStamp(key)) : stampHash_;
  if (line.stampHash.load(std::memory_order_relaxed) != hash &&
      !channel_.dataArrived(key, line.stamp())) {
    round.isStuck = true;
    return false;
  }
  if (line.bytes != round.bound->ops[index].at.bytes) {
    failMapped(round, index, Outcome::WrongSize);
    return false;
  }
  if (line.place == Publication::Place::Here) {
    at = {&line, from, line.small, {}};
    take(round, index);
    return true;
  }
  const auto area =
      line.place == Publication::Place::Ring ? board.ring(from) : board.data(from, number());
  const bool isInMemory = line.place == Publication::Place::Memory;
  const std::uint64_t inArea = isInMemory ? line.pieces * sizeof(PublishedPiece) : line.bytes;
  if (line.offset > area.size() || inArea > area.size() - line.offset) {
    failMapped(round, index, Outcome::WrongSize);
    return false;
  }
  const std::byte* const start = area.data() + line.offset;
  if (isInMemory) {
    at = {&line, from, nullptr, {reinterpret_cast<const PublishedPiece*>(start), line.pieces}};
    if (!op.isFolded) return false;
  } else {
    at = {&line, from, start, {}};
  }
  take(round, index);
  return true;
}

// What a receive has found is for a sum that reads it there, or is copied.
void CollectiveOperation::take(Round& round, std::uint32_t index) {
  const LocalOp& op = round.bound->local->ops[index];
  std::byte* const whole = op.isFolded ? nullptr : addressOf(round, round.bound->ops[index].at);
  const std::byte* data = round.located[index].data;
  if (whole != nullptr && request_.output.bytes() < kStreamedBytes) {
    copy(whole, data, round.bound->ops[index].at.bytes);
    doneWith(round, index);
  } else if (!op.isFolded) {
    for (const Buffer& to : buffersOf(round, index)) {
      if (request_.output.bytes() >= kStreamedBytes)
        streamCopy(to.address, data, to.bytes);
      else
        copy(to.address, data, to.bytes);
      data += to.bytes;
    }
    doneWith(round, index);
  }
}

// A part of a receive from another rank's memory. It stands first in toRead until it is over.
bool CollectiveOperation::fetch(Round& round, std::uint32_t index) {
  const Located& at = round.located[index];
  if (at.line == nullptr) {
    // One whose publication is there goes first.
    const auto found = std::find_if(round.toRead.begin(), round.toRead.end(), [&](auto other) {
      return round.located[other].line != nullptr;
    });
    if (found == round.toRead.end()) return false;
    std::rotate(round.toRead.begin(), found, found + 1);
    return fetch(round, round.toRead[0]);
  }
  std::uint64_t before = 0, budget = kReadBytes;
  for (const Buffer& to : buffersOf(round, index)) {
    const std::uint64_t end = before + to.bytes;
    if (round.fetched < end && budget > 0) {
      const std::uint64_t skip = round.fetched - before;
      const std::uint64_t bytes = std::min(budget, to.bytes - skip);
      if (!readAt(at, round.fetched, static_cast<std::byte*>(to.address) + skip, bytes)) {
        failMapped(round, index, Outcome::Cancelled);
        return false;
      }
      round.fetched += bytes;
      budget -= bytes;
    }
    before = end;
  }
  if (round.fetched < before) return true;
  round.fetched = 0;
  round.toRead.erase(round.toRead.begin());
  doneWith(round, index);
  finishOp(round, index);
  return true;
}

// Bytes [offset, offset + bytes) of what was published in another rank's memory.
bool CollectiveOperation::readAt(const Located& at, std::uint64_t offset, void* to,
                                 std::uint64_t bytes) {
  auto* out = static_cast<std::byte*>(to);
  for (const PublishedPiece& piece : at.pieces) {
    if (bytes == 0) break;
    if (offset >= piece.bytes) {
      offset -= piece.bytes;
      continue;
    }
    const std::uint64_t part = std::min(bytes, piece.bytes - offset);
    if (!channel_.board()->read(at.from, piece.address + offset, out, part)) return false;
    out += part;
    bytes -= part;
    offset = 0;
  }
  // What was read before this is good.
  threadFence(std::memory_order_acquire);
  return bytes == 0 && at.line->isWithdrawn.load(std::memory_order_acquire) == 0;
}

void CollectiveOperation::doneWith(Round& round, std::uint32_t index) {
  Located& at = round.located[index];
  if (at.line == nullptr) return;
  switch (at.line->place) {
    case Publication::Place::Here:
    case Publication::Place::Data:
      return;
    case Publication::Place::Ring:
    case Publication::Place::Memory:
      break;
  }
  at.line->taken.fetch_or(bit(channel_.rank()), std::memory_order_acq_rel);
  channel_.broughtData();
}

void CollectiveOperation::failMapped(Round& round, std::uint32_t index, Outcome outcome) {
  round.isStuck = true;
  const LocalOp& op = round.bound->local->ops[index];
  const Transfer& t = request_.schedule->schedule().transfers[op.index];
  const bool sends = op.kind == LocalKind::Send;
  channel_.transferFailed(*this, sends, sends ? t.to.rank : t.from.rank, outcome);
}

// The operand of a sum at `offset` of what receive `recv` found; null: it cannot be read.
const std::byte* CollectiveOperation::mappedOperand(Round& round, std::uint32_t recv,
                                                    std::uint64_t offset, std::uint64_t bytes,
                                                    std::size_t input, std::size_t inputs) {
  const Located& at = round.located[recv];
  if (at.data != nullptr) return at.data + offset;
  std::byte* const scratch = channel_.scratch(inputs) + input * Channel::kScratchStride;
  if (readAt(at, offset, scratch, bytes)) return scratch;
  failMapped(round, recv, Outcome::Cancelled);
  return nullptr;
}

void CollectiveOperation::letGoOfInputs(Round& round, const Step& step) {
  const auto& recvs = round.bound->local->inputRecv;
  if (recvs.empty()) return;
  for (std::uint32_t i = 0; i < step.inputCount; ++i) {
    const std::uint32_t recv = recvs[step.firstInput + i];
    if (recv != kNoOp && !round.located.empty()) doneWith(round, recv);
  }
}

void CollectiveOperation::withdraw() {
  if (!failed()) return;
  for (const auto& round : rounds_) {
    for (std::uint32_t p = 0; p < round->published.size(); ++p) {
      if (round->published[p] == Published::No) continue;
      channel_.board()->publication(channel_.rank(), number(), p).isWithdrawn.store(1);
    }
  }
}

bool CollectiveOperation::hearsAll() const { return supplied() && localProgram().hearsAll; }

bool CollectiveOperation::hasNews() const {
  if (!started_ || failed()) return true;
  Board* const board = channel_.board();
  const auto hasNews = [&](const std::unique_ptr<Round>& round) {
    if (!round->ready.empty() || !round->steps.steps.empty() || round->isStuck) return true;
    const auto& ops = round->bound->local->ops;
    const auto& transfers = request_.schedule->schedule().transfers;
    const auto hasCome = [&](std::uint32_t index) {
      if (round->located[index].line != nullptr) return true;
      const Publication& line =
          awaitedLine(*board, request_.schedule->schedule(), ops[index], number());
      return line.number.load(std::memory_order_acquire) == number();
    };
    const auto isTaken = [&](std::uint32_t index) {
      const int reader = transfers[ops[index].index].to.rank;
      const Publication& line =
          board->publication(channel_.rank(), number(), ops[index].publication);
      return (line.taken.load(std::memory_order_acquire) & bit(reader)) != 0;
    };
    return !round->toPublish.empty() ||
           std::any_of(round->toRead.begin(), round->toRead.end(), hasCome) ||
           std::any_of(round->toBeTaken.begin(), round->toBeTaken.end(), isTaken);
  };
  return rounds_.empty() || std::any_of(rounds_.begin(), rounds_.end(), hasNews);
}

bool CollectiveOperation::usesTransport() const {
  return !supplied() || !request_.schedule->isMapped() || request_.schedule->hasMessages();
}

bool CollectiveOperation::awaitsSpace() const {
  return std::any_of(rounds_.begin(), rounds_.end(),
                     [](const auto& round) { return !round->toPublish.empty(); });
}

}  // namespace byway
