// SPDX-License-Identifier: BSD-3-Clause
#include "byway/transport/transport.h"

#include <algorithm>

#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/base/log.h"
#include "byway/transport/transport_state.h"

namespace byway {
namespace {

template <class Piece>
std::uint64_t totalBytes(std::span<const Piece> pieces) {
  std::uint64_t sum = 0;
  for (const Piece& piece : pieces) sum += piece.bytes;
  return sum;
}

// Why an arrived header cannot be true, or nullptr.
const char* whyMalformed(const Arrival& arrival, std::size_t eagerLimit) {
  if (arrival.from < 0) return "no peer";
  if (arrival.header.bytes == 0) return "no bytes";
  if (arrival.header.bytes >> 56 != 0) return "an impossible size";
  if (arrival.eager && arrival.header.bytes > eagerLimit) return "too many eager bytes";
  return nullptr;
}

}  // namespace

Transport::Transport(std::unique_ptr<Wire> wire, TransportOptions options)
    : wire_(std::move(wire)) {
  options.eagerBytes = std::min(options.eagerBytes, wire_->eagerLimit());
  state_ = std::make_unique<State>(*wire_, options);
  wire_->setSink(this);
}

Transport::~Transport() { close(0); }

void Transport::setSink(ArrivalSink* sink) { state_->sink = sink; }

void Transport::send(PeerId peer, const MatchKey& key, const Stamp& stamp,
                     std::span<const ConstBuffer> pieces, Completion done) {
  State& s = *state_;
  if (s.closed || s.cancelled.contains(key.communicator)) return done(Outcome::Cancelled);
  WireHeader header;
  header.key = key;
  header.stamp = stamp;
  header.bytes = totalBytes(pieces);
  if (s.usesTimes) header.sentAt = wire_->clock().now();
  BYWAY_ASSERT(header.bytes > 0 && peer >= 0);
  const bool eager = s.takeCredit(peer, header.bytes);
  s.addOwed(peer, header);

  auto& sends = s.communicators[key.communicator].sends;
  State::Send& send = sends.emplace_back();
  send.self = std::prev(sends.end());
  send.communicator = key.communicator;
  send.done = done;
  send.state = &s;
  send.id = wire_->send(peer, header, pieces, eager, {&State::sent, &send, 0});
}

void Transport::recv(PeerId peer, const MatchKey& key, std::span<const Buffer> pieces,
                     Completion done) {
  State& s = *state_;
  if (s.closed || s.cancelled.contains(key.communicator)) return done(Outcome::Cancelled);
  BYWAY_ASSERT(peer >= 0);
  auto& recvs = s.communicators[key.communicator].recvs;
  State::Recv& recv = recvs.emplace_back();
  recv.self = std::prev(recvs.end());
  recv.key = key;
  recv.peer = peer;
  for (const Buffer& piece : pieces) {
    if (piece.bytes > 0) recv.pieces.push_back(piece);
  }
  recv.bytes = totalBytes(pieces);
  BYWAY_ASSERT(recv.bytes > 0);
  recv.done = done;
  if (s.usesTimes) recv.postedAt = wire_->clock().now();
  recv.state = &s;
  if (State::Early* early = s.findEarly(recv)) {
    const Arrival arrival = early->arrival;
    s.dropEarly(*early);
    s.match(recv, arrival);
  } else if (s.peer(peer).isLost) {
    s.complete(recv, Outcome::PeerLost);
  } else {
    s.posted.push(key, &recv);
  }
}

void Transport::control(PeerId peer, std::span<const std::byte> payload) {
  BYWAY_ASSERT(payload.size() <= kControlBytes && peer >= 0);
  if (state_->closed) return;
  WireHeader header;
  header.kind = MessageKind::Control;
  header.bytes = payload.size();
  state_->addOwed(peer, header);
  const ConstBuffer piece(payload.data(), payload.size());
  wire_->send(peer, header, {&piece, 1}, true, {});
}

void Transport::arrived(const Arrival& arrival, std::span<const std::byte> payload) {
  State& s = *state_;
  const WireHeader& header = arrival.header;
  switch (header.kind) {
    case MessageKind::Control:
      s.creditArrived(arrival.from, header);
      if (payload.size() > kControlBytes) {
        log(LogLevel::Warning, fmt::format("dropped a control message of {} bytes from peer {}",
                                           payload.size(), arrival.from));
      } else if (s.sink != nullptr && !s.closed) {
        s.sink->controlArrived(arrival.from, payload);
      }
      return;
    case MessageKind::Credit:
      return s.creditArrived(arrival.from, header);
    case MessageKind::Data:
      break;
  }
  const char* why = whyMalformed(arrival, wire_->eagerLimit());
  if (why == nullptr) {
    s.creditArrived(arrival.from, header);
    return s.file(arrival);
  }
  log(LogLevel::Warning, fmt::format("dropped a message from peer {}: {} ({} bytes)", arrival.from,
                                     why, header.bytes));
  wire_->finish(arrival.from, arrival, Outcome::Cancelled);
}

void Transport::State::file(const Arrival& arrival) {
  const MatchKey& key = arrival.header.key;
  bool wanted = true;
  if (!closed && sink != nullptr && !cancelled.contains(key.communicator)) {
    wanted = sink->dataArrived(key, arrival.header.stamp);  // may cancel the communicator
  }
  if (closed || cancelled.contains(key.communicator)) return finish(arrival, Outcome::Cancelled);
  Recv* recv = wanted ? posted.front(key) : nullptr;
  if (recv != nullptr && recv->peer != arrival.from) {
    log(LogLevel::Warning, fmt::format("dropped a message for peer {} that came from peer {}",
                                       recv->peer, arrival.from));
    return finish(arrival, Outcome::Cancelled);
  }
  if (recv != nullptr) {
    posted.remove(key, recv);
    return match(*recv, arrival);
  }
  auto& call = earlyByCall[{key.communicator, key.sequence}];
  Early& message = call.emplace_back();
  message.self = std::prev(call.end());
  message.arrival = arrival;
  early.push(key, &message);
}

Transport::State::Early* Transport::State::findEarly(const Recv& recv) {
  Early* message = early.front(recv.key);
  while (message != nullptr && message->arrival.from != recv.peer) {
    log(LogLevel::Warning, fmt::format("dropped a message for peer {} that came from peer {}",
                                       recv.peer, message->arrival.from));
    finish(message->arrival, Outcome::Cancelled);
    dropEarly(*message);
    message = early.front(recv.key);
  }
  return message;
}

void Transport::State::dropEarly(Early& message) {
  const MatchKey key = message.arrival.header.key;
  early.remove(key, &message);
  const auto call = earlyByCall.find({key.communicator, key.sequence});
  call->second.erase(message.self);
  if (call->second.empty()) earlyByCall.erase(call);
}

void Transport::State::match(Recv& recv, const Arrival& arrival) {
  if (arrival.header.bytes != recv.bytes) {
    finish(arrival, Outcome::WrongSize);
    return complete(recv, Outcome::WrongSize);
  }
  recv.moving = true;
  recv.arrival = arrival;
  recv.arrival.postedAt = recv.postedAt;
  recv.fetches = recv.pieces.size();
  // Completions come from progress() only, so `recv` outlives the loop.
  std::uint64_t offset = 0;
  for (const Buffer& piece : recv.pieces) {
    wire.fetch(recv.peer, recv.arrival, offset, piece, {&State::fetched, &recv, 0});
    offset += piece.bytes;
  }
}

void Transport::State::fetched(void* self, std::uint32_t /*tag*/, Outcome outcome) {
  Recv& recv = *static_cast<Recv*>(self);
  if (recv.outcome == Outcome::Ok) recv.outcome = outcome;
  if (--recv.fetches > 0) return;
  recv.state->finish(recv.arrival, recv.outcome);
  recv.state->complete(recv, recv.outcome);
}

void Transport::State::complete(Recv& recv, Outcome outcome) {
  const Completion done = recv.done;
  const std::uint64_t communicator = recv.key.communicator;
  communicators.at(communicator).recvs.erase(recv.self);
  forgetIfEnded(communicator);
  done(outcome);
}

void Transport::State::sent(void* self, std::uint32_t /*tag*/, Outcome outcome) {
  Send& send = *static_cast<Send*>(self);
  const Completion done = send.done;
  State& state = *send.state;
  const std::uint64_t communicator = send.communicator;
  state.communicators.at(communicator).sends.erase(send.self);
  state.forgetIfEnded(communicator);
  done(outcome);
}

void Transport::State::finish(const Arrival& arrival, Outcome outcome) {
  wire.finish(arrival.from, arrival, outcome);
  if (arrival.eager) returnCredit(arrival.from, arrival.header.bytes);
}

}  // namespace byway
