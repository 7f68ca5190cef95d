// SPDX-License-Identifier: BSD-3-Clause
#include "byway/transport/inproc/inproc_wire.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "byway/base/error.h"
#include "byway/transport/completion_queue.h"
#include "byway/transport/inproc/mailbox.h"

namespace byway {
namespace {

using inproc::Finished;
using inproc::Item;
using inproc::Mailbox;
using inproc::Message;
using inproc::MessagePtr;
using inproc::Withdrawn;

constexpr std::uint64_t kMagic = 0x6279776179696e31;  // "bywayin1"
constexpr std::size_t kEagerLimit = std::size_t{1} << 20;

struct WireAddress {
  std::uint64_t magic = kMagic;
  std::uint64_t fabric = 0;
  std::uint64_t index = 0;
};

// Copies [offset, offset + to.bytes) of the concatenated pieces; Phantom on either side copies
// nothing.
void gather(std::span<const ConstBuffer> pieces, std::uint64_t offset, const Buffer& to) {
  auto* out = static_cast<std::byte*>(to.address);
  std::uint64_t left = to.bytes;
  for (const ConstBuffer& piece : pieces) {
    if (offset >= piece.bytes) {
      offset -= piece.bytes;
      continue;
    }
    const std::uint64_t count = std::min<std::uint64_t>(left, piece.bytes - offset);
    if (piece.kind == MemoryKind::Host && to.kind == MemoryKind::Host && count > 0) {
      std::memcpy(out, static_cast<const std::byte*>(piece.address) + offset, count);
    }
    if (to.kind == MemoryKind::Host) out += count;
    left -= count;
    offset = 0;
    if (left == 0) return;
  }
}

// The eager data: Host pieces in one copy, Phantom ones as they are.
void copyPieces(std::span<const ConstBuffer> pieces, Message& message) {
  std::size_t bytes = 0;
  for (const ConstBuffer& p : pieces) bytes += p.kind == MemoryKind::Host ? p.bytes : 0;
  message.copy.resize(bytes);
  std::byte* out = message.copy.data();
  for (const ConstBuffer& piece : pieces) {
    ConstBuffer own = piece;
    if (piece.kind == MemoryKind::Host && piece.bytes > 0) {
      std::memcpy(out, piece.address, piece.bytes);
      own.address = out;
      out += piece.bytes;
    }
    message.pieces.push_back(own);
  }
}

class InprocWire final : public Wire {
 public:
  InprocWire(std::shared_ptr<InprocFabric> fabric, const Clock& clock)
      : fabric_(std::move(fabric)), clock_(clock), mailbox_(std::make_shared<Mailbox>()) {
    blocks_ = dynamic_cast<const SteadyClock*>(&clock) != nullptr;
    const std::scoped_lock lock(fabric_->impl().mutex);
    self_ = static_cast<PeerId>(fabric_->impl().mailboxes.size());
    fabric_->impl().mailboxes.push_back(mailbox_);
  }
  ~InprocWire() override { close(0); }

  Address address() const override;
  PeerId connect(std::span<const std::byte> address) override;
  void setSink(WireSink* sink) override { sink_ = sink; }

  SendId send(PeerId peer, const WireHeader& header, std::span<const ConstBuffer> pieces,
              bool eager, Completion done) override;
  void withdraw(SendId id) override;
  void fetch(PeerId from, const Arrival& arrival, std::uint64_t offset, Buffer to,
             Completion done) override;
  void finish(PeerId from, const Arrival& arrival, Outcome outcome) override;

  bool progress() override;
  const Clock& clock() const override { return clock_; }
  std::size_t eagerLimit() const override { return kEagerLimit; }
  bool arm() override { return inbox_.empty() && due_.empty() && mailbox_->empty(); }
  void sleep(Seconds until) override {
    if (blocks_) mailbox_->sleep(until);
  }
  void wake() override { mailbox_->wake(); }
  void close(Seconds bound) override;

 private:
  struct Sent {
    MessagePtr message;
    PeerId peer;
    Completion done;
  };

  std::shared_ptr<Mailbox> mailboxOf(PeerId peer) const {
    const std::scoped_lock lock(fabric_->impl().mutex);
    return fabric_->impl().mailboxes.at(static_cast<std::size_t>(peer));
  }
  Arrival arrivalOf(const MessagePtr& message) const;
  void handle(MessagePtr message);
  void handle(const Finished& finished);
  void handle(const Withdrawn& withdrawn);

  std::shared_ptr<InprocFabric> fabric_;
  const Clock& clock_;
  bool blocks_ = false;
  std::shared_ptr<Mailbox> mailbox_;
  PeerId self_ = -1;
  WireSink* sink_ = nullptr;
  std::deque<Item> inbox_;
  CompletionQueue due_;
  std::unordered_map<SendId, Sent> sent_;
  SendId lastId_ = 0;
  std::unordered_map<void*, MessagePtr> unfinished_;
  bool isClosed_ = false;
};

Address InprocWire::address() const {
  WireAddress own;
  own.fabric = reinterpret_cast<std::uintptr_t>(fabric_.get());
  own.index = static_cast<std::uint64_t>(self_);
  Address bytes(sizeof own);
  std::memcpy(bytes.data(), &own, sizeof own);
  return bytes;
}

PeerId InprocWire::connect(std::span<const std::byte> address) {
  WireAddress peer;
  if (address.size() != sizeof peer) {
    throw Error(ErrorCode::InvalidArgument, "this is not the address of an inproc wire");
  }
  std::memcpy(&peer, address.data(), sizeof peer);
  const std::scoped_lock lock(fabric_->impl().mutex);
  if (peer.magic != kMagic || peer.fabric != reinterpret_cast<std::uintptr_t>(fabric_.get()) ||
      peer.index >= fabric_->impl().mailboxes.size()) {
    throw Error(ErrorCode::InvalidArgument, "this address is of no wire on this inproc fabric");
  }
  return static_cast<PeerId>(peer.index);
}

SendId InprocWire::send(PeerId peer, const WireHeader& header, std::span<const ConstBuffer> pieces,
                        bool eager, Completion done) {
  auto message = std::make_shared<Message>();
  message->header = header;
  message->from = self_;
  message->eager = eager;
  if (eager) {
    copyPieces(pieces, *message);
  } else {
    message->pieces.assign(pieces.begin(), pieces.end());
    message->id = ++lastId_;
  }
  if (isClosed_ || !mailboxOf(peer)->push(message)) {
    due_.push(done, isClosed_ ? Outcome::Cancelled : Outcome::PeerLost);
    return 0;
  }
  if (eager) {
    due_.push(done, Outcome::Ok);
    return 0;
  }
  sent_.emplace(message->id, Sent{message, peer, done});
  return message->id;
}

// Once the flag is set the receiver cannot read, so the sender need not wait for its answer.
void InprocWire::withdraw(SendId id) {
  const auto at = sent_.find(id);
  if (at == sent_.end()) return;
  const Sent sent = std::move(at->second);
  sent_.erase(at);
  {
    const std::scoped_lock lock(sent.message->mutex);
    sent.message->isWithdrawn = true;
  }
  mailboxOf(sent.peer)->push(Withdrawn{sent.message});
  due_.push(sent.done, Outcome::Cancelled);
}

void InprocWire::fetch(PeerId /*from*/, const Arrival& arrival, std::uint64_t offset, Buffer to,
                       Completion done) {
  const auto at = unfinished_.find(arrival.handle);
  if (at == unfinished_.end()) return due_.push(done, Outcome::Cancelled);
  Message& message = *at->second;
  const std::scoped_lock lock(message.mutex);
  if (!message.isWithdrawn) gather(message.pieces, offset, to);
  due_.push(done, message.isWithdrawn ? Outcome::Cancelled : Outcome::Ok);
}

void InprocWire::finish(PeerId from, const Arrival& arrival, Outcome outcome) {
  const auto at = unfinished_.find(arrival.handle);
  if (at == unfinished_.end()) return;
  const MessagePtr message = std::move(at->second);
  unfinished_.erase(at);
  if (!message->eager) mailboxOf(from)->push(Finished{message->id, outcome});
}

Arrival InprocWire::arrivalOf(const MessagePtr& message) const {
  Arrival arrival;
  arrival.header = message->header;
  arrival.eager = message->eager;
  arrival.from = message->from;
  arrival.handle = message.get();
  arrival.arrivedAt = clock_.now();
  return arrival;
}

void InprocWire::handle(MessagePtr message) {
  const Arrival arrival = arrivalOf(message);
  if (message->header.kind != MessageKind::Data) {
    const auto payload = std::as_bytes(std::span(message->copy));
    return sink_->arrived(arrival, payload);
  }
  unfinished_.emplace(message.get(), std::move(message));
  sink_->arrived(arrival, {});
}

void InprocWire::handle(const Finished& finished) {
  const auto at = sent_.find(finished.id);
  if (at == sent_.end()) return;  // withdrawn meanwhile
  const Completion done = at->second.done;
  sent_.erase(at);
  done(finished.outcome);
}

void InprocWire::handle(const Withdrawn& withdrawn) {
  if (unfinished_.contains(withdrawn.message.get())) {
    sink_->withdrawn(arrivalOf(withdrawn.message));
  }
}

bool InprocWire::progress() {
  if (isClosed_) return due_.drain();
  mailbox_->take(inbox_);
  bool active = !inbox_.empty();
  for (std::size_t count = inbox_.size(); count > 0 && !inbox_.empty(); --count) {
    Item item = std::move(inbox_.front());
    inbox_.pop_front();
    std::visit([this](auto& what) { handle(std::move(what)); }, item);
  }
  active |= due_.drain();
  return active;
}

void InprocWire::close(Seconds /*bound*/) {
  if (isClosed_) return;
  isClosed_ = true;
  mailbox_->close(inbox_);
  for (Item& item : inbox_) {
    if (auto* message = std::get_if<MessagePtr>(&item)) {
      if (!(*message)->eager) {
        mailboxOf((*message)->from)->push(Finished{(*message)->id, Outcome::PeerLost});
      }
    }
  }
  inbox_.clear();
  auto sent = std::move(sent_);
  sent_.clear();
  for (auto& [id, one] : sent) {
    {
      const std::scoped_lock lock(one.message->mutex);
      one.message->isWithdrawn = true;
    }
    mailboxOf(one.peer)->push(Withdrawn{one.message});
    due_.push(one.done, Outcome::Cancelled);
  }
  while (due_.drain()) {
  }
  for (const auto& [handle, message] : unfinished_) {
    if (!message->eager) mailboxOf(message->from)->push(Finished{message->id, Outcome::PeerLost});
  }
  unfinished_.clear();
}

}  // namespace

std::unique_ptr<Wire> makeInprocWire(std::shared_ptr<InprocFabric> fabric, const Clock& clock) {
  return std::make_unique<InprocWire>(std::move(fabric), clock);
}

}  // namespace byway
