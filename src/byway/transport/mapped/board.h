// SPDX-License-Identifier: BSD-3-Clause
// Memory that the ranks of one communicator see when all of them run on one host (docs/host.md).
//
// Each rank makes a part of its own, and the others map it. A rank publishes what it has to say in
// its part; the others read it there. For every call there is a slot, used in turns: it holds up to
// kPublications publications, each with its data, or with the place where its data lies in the
// publisher's memory. Nothing here knows what a call is.
//
// Not thread-safe: the engine's lock covers every call. Words that other ranks read are atomic.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "byway/base/clock.h"
#include "byway/transport/wire.h"

namespace byway {

// What `count` of them at Publication::offset name.
struct PublishedPiece {
  std::uint64_t address = 0, bytes = 0;  // in the publisher's memory
};

// Two cache lines. What a reader of the same call needs is in the first, `number` written last,
// with release; the second is touched where the data lies elsewhere, and by ranks that compare
// calls.
struct alignas(64) Publication {
  static constexpr std::size_t kSmallBytes = 32;
  enum class Place : std::uint32_t {
    Here,    // in `small`
    Data,    // at `offset` of the slot's data
    Ring,    // at `offset` of the publisher's ring; its readers set `taken`, too
    Memory,  // in the publisher's memory, in pieces listed at `offset` of the slot's data
  };
  std::atomic<std::uint64_t> number;     // of the call, counted from 1
  std::atomic<std::uint64_t> stampHash;  // of stamp()
  std::uint64_t bytes;
  Place place;
  std::uint32_t pieces;
  union {
    std::uint64_t offset;
    std::byte small[kSmallBytes];
  };

  // A bit for each rank that is done (Ring, Memory).
  alignas(64) std::atomic<std::uint64_t> taken;
  std::atomic<std::uint32_t> isWithdrawn;  // what is read from now on may be garbage
  Stamp words;                             // stamp()

  // Also readable while the publisher may write the next.
  Stamp stamp() const;
  // With its hash, which whoever publishes often has at hand.
  void setStamp(const Stamp& stamp, std::uint64_t hash);
  static std::uint64_t hashOf(const Stamp& stamp);
};
static_assert(sizeof(Publication) == 128 && std::atomic<std::uint64_t>::is_always_lock_free);

class Board {
 public:
  // Calls that a rank may be ahead of the slowest, and of those that use a slot's data.
  static constexpr std::size_t kSlots = 64, kDataSlots = 16;
  static constexpr int kMostRanks = 64;  // as Publication::taken has bits
  static constexpr std::size_t kPublications = 256;
  static constexpr std::size_t kDataBytes = std::size_t{256} << 10;  // of all of a slot
  static constexpr std::size_t kRingBytes = std::size_t{4} << 20;    // of all calls

  // This rank's part. Null for too many ranks, or where the system gives no such memory.
  static std::shared_ptr<Board> make(int rank, int ranks);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  // Where the others find it; for join(). At most 200 characters.
  std::string address() const;

  // What all ranks can do with all parts.
  enum class Reach : std::uint32_t {
    Unknown,  // while a rank has not said
    None,     // at least one part cannot be mapped by at least one rank
    Data,     // what is published as data can be read, another rank's memory cannot
    Memory,   // both
  };
  // Maps the others' parts, one address for each rank ("" for a rank that has none), and agrees:
  // the same answer on all ranks. Throws Error{Timeout} when a rank says nothing for so long.
  Reach join(std::span<const std::string> addresses, Seconds timeout);
  Reach reach() const { return reach_; }
  // Once joined: the cores that each rank may run on, of the rank that has the fewest.
  int cores() const { return cores_; }

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(parts_.size()); }

  // Call `number` counts from 1, the same on all ranks.
  Publication& publication(int rank, std::uint64_t number, std::uint32_t index);
  std::span<std::byte> data(int rank, std::uint64_t number);
  // From where on call `number`, whose slot is free, is to write its data, `bytes` in all: behind
  // what the slot's last call wrote, where there is room. To write again what another core has in
  // its caches is expensive, and what it read long ago has left them.
  std::uint64_t dataStart(std::uint64_t number, std::uint64_t bytes);
  std::span<std::byte> ring(int rank);
  // Gives back places in the ring that all their readers are done with. Also to be called before a
  // line is written again, since its bits are lost then.
  void reclaimRing();
  // A place in this rank's ring for `bytes`, until the ranks in `readers` (a bit each) have set
  // their bits in the line. Nothing while there is none.
  std::optional<std::uint64_t> takeRing(std::uint64_t bytes, const Publication& line,
                                        std::uint64_t readers);
  // Whether all ranks are done with the call that had this call's slot before, and its data.
  bool isFree(std::uint64_t number, bool withData);
  // This rank does not look any more at what belongs to calls up to `number`. True when that is
  // new.
  bool setDone(std::uint64_t number);
  // Its part of the calls up to `number` is over; it may still look whether the others made the
  // same.
  void setEnded(std::uint64_t number);
  // Whether all ranks' parts of that call are over.
  bool haveEnded(std::uint64_t number);

  // A rank that is about to sleep says what for, and looks once more; a rank that brings something
  // about asks afterwards whom it has to wake.
  enum class Sleep : std::uint32_t { No, ForData, ForSpace };
  // `elsewhere`: not in sleep(), but in the transport's.
  void setSleep(Sleep what, bool elsewhere = false);
  Sleep sleepOf(int rank) const;
  // Marks it awake, and ends its sleep(). True, for one caller only, where it sleeps elsewhere and
  // has to be woken there.
  bool endSleepOf(int rank);
  // After setSleep(): until a rank ends it, or for so long. The only call without the engine's
  // lock.
  void sleep(Seconds longest);

  // Where a rank was when it waited last: on `core` (-1: not known); whether it still waits there,
  // without sleeping.
  struct Seat {
    int core = -1;
    bool waits = false;
  };
  void setSeat(Seat seat);
  Seat seatOf(int rank) const;

  // Copies from the memory of rank `from`. False: it is gone, or there is no such memory.
  bool read(int from, std::uint64_t address, void* to, std::size_t bytes) const;

 private:
  struct Part;
  Board(int rank, int ranks, std::shared_ptr<Part> own);
  Reach mapPart(int rank, const std::string& address);
  // The least of a word of all ranks' parts.
  template <typename Word>
  std::uint64_t leastOf(const Word& word) const;
  Part& part(int rank) const { return *parts_[static_cast<std::size_t>(rank)]; }

  int rank_;
  std::vector<std::shared_ptr<Part>> parts_;
  Reach reach_ = Reach::Unknown;
  int cores_ = 1;
  // Done, and ended, by all ranks when last looked at.
  std::uint64_t slowest_ = 0, allEnded_ = 0;
  std::array<std::uint64_t, kDataSlots> dataEnds_{};  // by slot, for dataStart()
  struct Taken {
    std::uint64_t offset;
    const Publication* line;
    std::uint64_t readers;
  };
  std::deque<Taken> ringTaken_;  // oldest first
  std::uint64_t ringEnd_ = 0;    // of the last
};

}  // namespace byway
