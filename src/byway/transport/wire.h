// SPDX-License-Identifier: BSD-3-Clause
// What a back-end must be able to do: carry a header (with small data behind it, or naming memory
// that can be fetched), fetch, and say that it was fetched. Matching, credits and waiting are the
// Transport's (transport.h), the same for all back-ends; pacing is a decorator (paced/).
//
// Nothing here is thread-safe unless it says so: the engine's lock covers every call. A wire calls
// completions and the sink from inside progress() and close() only, so no call re-enters its
// caller; they may call any function of the wire but progress(), sleep() and close().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "byway/base/buffer.h"
#include "byway/base/clock.h"

namespace byway {

// Identifies one message among all those of a process: who it is from within which communicator,
// which call, which transfer of the call.
struct MatchKey {
  std::uint64_t communicator = 0;
  std::uint64_t sequence = 0;
  std::uint32_t transfer = 0;
  std::uint32_t source = 0;  // the sender's rank in the communicator
  bool operator==(const MatchKey&) const = default;
};

// Uninterpreted words that travel in every header; the executor keeps the call's fingerprint here.
using Stamp = std::array<std::uint64_t, 6>;

// What became of a transfer. After any of them the transport no longer touches its buffers.
enum class Outcome : std::uint8_t {
  Ok,
  Cancelled,  // cancel() or close(), here or at the peer, reached it first
  PeerLost,   // the peer's process or the way to it is gone
  WrongSize,  // the message and the posted receive differ in bytes; nothing was written
};

// A callback without allocation: fn(self, tag, outcome).
struct Completion {
  void (*fn)(void* self, std::uint32_t tag, Outcome outcome) = nullptr;
  void* self = nullptr;
  std::uint32_t tag = 0;
  void operator()(Outcome outcome) const {
    if (fn != nullptr) fn(self, tag, outcome);
  }
};

// An opaque, self-describing address of a process's wire; at most 4 KB; sent through the store.
using Address = std::vector<std::byte>;
using PeerId = std::int32_t;   // small and dense from 0: owners index tables by it
using SendId = std::uint64_t;  // names a message until its `done`; 0: nothing to withdraw

enum class MessageKind : std::uint8_t {
  Data,
  Control,
  Credit,  // nothing but a header that gives credit back
};

struct WireHeader {
  MessageKind kind = MessageKind::Data;
  MatchKey key;
  Stamp stamp{};
  std::uint64_t bytes = 0;
  Seconds sentAt = 0;  // the sender's clock; used by paced links
  // Eager bytes and messages of the peer that were matched here since the last header to it.
  std::uint32_t creditBytes = 0;
  std::uint32_t creditMessages = 0;
};

// A message that has arrived and was not finished yet. `handle` belongs to the wire. For eager
// messages the data is here already; fetch() copies it from the wire's descriptor.
struct Arrival {
  WireHeader header;
  bool eager = false;
  PeerId from = -1;
  void* handle = nullptr;  // unique among the unfinished arrivals of a wire
  Seconds arrivedAt = 0;
  Seconds postedAt = 0;  // when its receive was posted; the Transport writes it at the match
};

class WireSink {
 public:
  virtual ~WireSink() = default;
  // The wire keeps `arrival.handle` valid until finish(). For messages that are not Data `payload`
  // holds the data during the call only, and there is nothing to fetch or finish.
  virtual void arrived(const Arrival& arrival, std::span<const std::byte> payload) = 0;
  // The sender wants its memory back: what an unfinished arrival's fetches bring from now on may be
  // garbage. The sink abandons and finishes it.
  virtual void withdrawn(const Arrival& arrival) = 0;
  // Once a peer: its process ended or cannot be reached any more. What it sent before was
  // delivered, what was sent to it has completed, and later transfers end with PeerLost.
  virtual void peerLost(PeerId peer) = 0;
};

class Wire {
 public:
  virtual ~Wire() = default;

  virtual Address address() const = 0;
  // The same address gives the same peer. Connecting to oneself is allowed. Throws Error{Resource,
  // InvalidArgument} when the address cannot be used and Error{PeerLost} when its process is known
  // to have ended.
  virtual PeerId connect(std::span<const std::byte> address) = 0;
  virtual void setSink(WireSink* sink) = 0;

  // Sends header and data. eager: the data is copied or sent at once, `done` comes when `pieces`
  // may be reused, and the result is 0. Not eager: only the header goes; the pieces must stay
  // readable until `done`, which comes when the receiver finished (or the peer is lost).
  virtual SendId send(PeerId peer, const WireHeader& header, std::span<const ConstBuffer> pieces,
                      bool eager, Completion done) = 0;
  // Asks for `done` soon (within kWithdrawBound even if the peer does not answer), with Cancelled
  // unless the receiver finished first.
  virtual void withdraw(SendId id) = 0;
  static constexpr Seconds kWithdrawBound = 0.5;

  // Copies bytes [offset, offset + to.bytes) of an arrived message to `to`. Several may be under
  // way.
  virtual void fetch(PeerId from, const Arrival& arrival, std::uint64_t offset, Buffer to,
                     Completion done) = 0;
  // Fetches of this arrival that are under way may end early, with Cancelled.
  virtual void abandon(const Arrival& /*arrival*/) {}
  // Ends a message without fetches under way: frees the descriptor and, unless it was eager, tells
  // the sender `outcome`.
  virtual void finish(PeerId from, const Arrival& arrival, Outcome outcome) = 0;

  // Does what can be done without waiting; true if anything happened.
  virtual bool progress() = 0;
  // The earliest time at which progress() has work although nothing arrives (kNever: none).
  virtual Seconds nextTimer() const { return kNever; }
  virtual const Clock& clock() const = 0;

  // Whether it goes by the times in headers and of receives; else the Transport leaves them out.
  virtual bool usesTimes() const { return false; }
  // Largest message that may be sent eagerly.
  virtual std::size_t eagerLimit() const = 0;

  // Prepares sleep(): false when something is pending and progress() must run again first.
  virtual bool arm() = 0;
  // Blocks until something arrives, wake() is called or `until` (on clock()) has come. The only
  // call that is made without the engine's lock; at most one thread is in it.
  virtual void sleep(Seconds until) = 0;
  // Ends a sleep(), or makes the next one return at once. Any thread, also a signal-free callback.
  virtual void wake() = 0;

  // Ends everything under way within `bound` seconds; completions still outstanding are called with
  // Cancelled once the wire can no longer touch their buffers.
  virtual void close(Seconds bound) = 0;
};

}  // namespace byway
