// SPDX-License-Identifier: BSD-3-Clause
// Matched messages over a Wire: send and recv meet by MatchKey, never by arrival.
// Not thread-safe: the engine's lock covers every call except sleep() and wake(). Completions are
// called from progress(), cancel() and close(); where nothing has to be waited for (an unequal
// size, a cancelled communicator) also from send() and recv().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "byway/transport/wire.h"

namespace byway {

struct TransportOptions {
  std::size_t eagerBytes = 8192;  // data up to this size travels with its header
  // Eager bytes and messages of ours that may lie unmatched at one peer; beyond either a message is
  // announced, not sent. The same in all processes.
  std::size_t eagerCredit = std::size_t{1} << 20;
  std::uint32_t eagerMessages = 256;
};

class ArrivalSink {
 public:
  virtual ~ArrivalSink() = default;
  // Every data message, as it arrives and before it is matched. Used to find calls that differ.
  // False keeps it from a receive that is posted: it waits like an early one, and ends with
  // cancel(), so that its sender learns the reason from the owner first.
  virtual bool dataArrived(const MatchKey& key, const Stamp& stamp) = 0;
  // A control message of at most kControlBytes.
  virtual void controlArrived(PeerId from, std::span<const std::byte> payload) = 0;
  // The peer is gone for good; receives from it that no message had matched have ended.
  virtual void peerLost(PeerId /*peer*/) {}
};

class Transport final : private WireSink {
 public:
  static constexpr std::size_t kControlBytes = 4096;

  explicit Transport(std::unique_ptr<Wire> wire, TransportOptions options = {});
  ~Transport() override;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  Address address() const { return wire_->address(); }
  PeerId connect(std::span<const std::byte> address) { return wire_->connect(address); }
  void setSink(ArrivalSink* sink);

  // Sends the concatenation of `pieces` (at least one byte in all) to the receive with this key.
  // key.source is this process's rank in the communicator. The span itself may go after the call;
  // the bytes must stay until `done`. An eager message completes when its bytes were copied: what
  // the receiver makes of it (WrongSize, Cancelled) is then known there only.
  void send(PeerId peer, const MatchKey& key, const Stamp& stamp,
            std::span<const ConstBuffer> pieces, Completion done);
  // Receives the message with this key (key.source is the sender's rank) into `pieces`. A message
  // of another size ends both sides with WrongSize. Cancelled without a cancel() here: the sender
  // withdrew. PeerLost: the peer is gone and had not sent it.
  void recv(PeerId peer, const MatchKey& key, std::span<const Buffer> pieces, Completion done);
  // Fire and forget, unmatched, at most kControlBytes; order with data messages is not kept.
  void control(PeerId peer, std::span<const std::byte> payload);

  // Calls fn(key, stamp) for every unmatched message of this call; fn must not call the transport.
  void forEachUnexpected(std::uint64_t communicator, std::uint64_t sequence,
                         const std::function<void(const MatchKey&, const Stamp&)>& fn) const;
  // The same for all calls of a communicator.
  void forEachUnexpected(std::uint64_t communicator,
                         const std::function<void(const MatchKey&, const Stamp&)>& fn) const;
  // Ends all transfers of a communicator with Cancelled, drops its unexpected messages (their
  // senders get Cancelled), and refuses what arrives for it later. Posted operations whose bytes
  // are being moved complete when the wire has let go of them. Ids must not be used again.
  void cancel(std::uint64_t communicator);
  // Whether a peer is gone.
  bool isLost(PeerId peer) const;
  // Transfers of a communicator that have not completed yet.
  std::size_t outstanding(std::uint64_t communicator) const;

  bool progress() { return wire_->progress(); }
  Seconds nextTimer() const { return wire_->nextTimer(); }
  const Clock& clock() const { return wire_->clock(); }
  bool arm() { return wire_->arm(); }
  // `until` must not lie after nextTimer().
  void sleep(Seconds until) { wire_->sleep(until); }
  void wake() { wire_->wake(); }
  // Ends all transfers with Cancelled and the wire within `bound`; everything later is Cancelled at
  // once. The destructor closes with bound 0 what is still open.
  void close(Seconds bound);

 private:
  struct State;
  void arrived(const Arrival& arrival, std::span<const std::byte> payload) override;
  void withdrawn(const Arrival& arrival) override;
  void peerLost(PeerId peer) override;

  std::unique_ptr<Wire> wire_;
  std::unique_ptr<State> state_;
};

}  // namespace byway
