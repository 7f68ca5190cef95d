// SPDX-License-Identifier: BSD-3-Clause
// How transfers end before their time: cancel, withdrawal by the sender, close.
#include <algorithm>
#include <limits>
#include <utility>

#include "byway/transport/transport_state.h"

namespace byway {

void Transport::forEachUnexpected(
    std::uint64_t communicator, std::uint64_t sequence,
    const std::function<void(const MatchKey&, const Stamp&)>& fn) const {
  const auto call = state_->earlyByCall.find({communicator, sequence});
  if (call == state_->earlyByCall.end()) return;
  for (const State::Early& message : call->second) {
    fn(message.arrival.header.key, message.arrival.header.stamp);
  }
}

void Transport::forEachUnexpected(
    std::uint64_t communicator,
    const std::function<void(const MatchKey&, const Stamp&)>& fn) const {
  const auto& calls = state_->earlyByCall;
  for (auto at = calls.lower_bound({communicator, 0});
       at != calls.end() && at->first.first == communicator; ++at) {
    for (const State::Early& message : at->second) {
      fn(message.arrival.header.key, message.arrival.header.stamp);
    }
  }
}

std::size_t Transport::outstanding(std::uint64_t communicator) const {
  const auto at = state_->communicators.find(communicator);
  if (at == state_->communicators.end()) return 0;
  return at->second.recvs.size() + at->second.sends.size();
}

void Transport::cancel(std::uint64_t communicator) {
  if (!state_->cancelled.insert(communicator).second) return;
  state_->cancel(communicator);
}

void Transport::State::cancel(std::uint64_t communicator) {
  for (auto call = earlyByCall.lower_bound({communicator, 0});
       call != earlyByCall.end() && call->first.first == communicator;) {
    for (Early& message : call->second) {
      early.remove(message.arrival.header.key, &message);
      finish(message.arrival, Outcome::Cancelled);
    }
    call = earlyByCall.erase(call);
  }
  Transfers& transfers = communicators[communicator];
  for (const Send& send : transfers.sends) {
    if (send.id != 0) wire.withdraw(send.id);
  }
  std::list<Recv> waiting;  // completions may call back: they see a consistent state
  for (auto at = transfers.recvs.begin(); at != transfers.recvs.end();) {
    Recv& recv = *at++;
    if (recv.moving) {
      recv.outcome = Outcome::Cancelled;
      wire.abandon(recv.arrival);
    } else {
      posted.remove(recv.key, &recv);
      waiting.splice(waiting.end(), transfers.recvs, recv.self);
    }
  }
  forgetIfEnded(communicator);
  for (const Recv& recv : waiting) recv.done(Outcome::Cancelled);
}

void Transport::State::forgetIfEnded(std::uint64_t communicator) {
  if (!closed && !cancelled.contains(communicator)) return;
  const auto at = communicators.find(communicator);
  if (at == communicators.end()) return;
  if (at->second.recvs.empty() && at->second.sends.empty()) communicators.erase(at);
}

void Transport::withdrawn(const Arrival& arrival) {
  State& s = *state_;
  const MatchKey& key = arrival.header.key;
  const auto call = s.earlyByCall.find({key.communicator, key.sequence});
  if (call != s.earlyByCall.end()) {
    for (State::Early& message : call->second) {
      if (message.arrival.handle != arrival.handle) continue;
      s.finish(message.arrival, Outcome::Cancelled);
      return s.dropEarly(message);
    }
  }
  const auto transfers = s.communicators.find(key.communicator);
  if (transfers == s.communicators.end()) return;
  for (State::Recv& recv : transfers->second.recvs) {
    if (!recv.moving || recv.arrival.handle != arrival.handle) continue;
    if (recv.outcome == Outcome::Ok) recv.outcome = Outcome::Cancelled;
    return wire_->abandon(recv.arrival);
  }
}

void Transport::peerLost(PeerId peer) {
  State& s = *state_;
  if (std::exchange(s.peer(peer).isLost, true)) return;
  std::list<State::Recv> waiting;  // completions may call back: they see a consistent state
  for (auto& [communicator, transfers] : s.communicators) {
    for (auto at = transfers.recvs.begin(); at != transfers.recvs.end();) {
      State::Recv& recv = *at++;
      if (recv.moving || recv.peer != peer) continue;
      s.posted.remove(recv.key, &recv);
      waiting.splice(waiting.end(), transfers.recvs, recv.self);
    }
  }
  for (const State::Recv& recv : waiting) {
    s.forgetIfEnded(recv.key.communicator);
    recv.done(Outcome::PeerLost);
  }
  if (s.sink != nullptr && !s.closed) s.sink->peerLost(peer);
}

bool Transport::isLost(PeerId peer) const {
  const auto index = static_cast<std::size_t>(peer);
  return index < state_->peers.size() && state_->peers[index].isLost;
}

void Transport::close(Seconds bound) {
  State& s = *state_;
  if (s.closed) return;
  s.closed = true;
  std::vector<std::uint64_t> ids;
  for (const auto& [id, transfers] : s.communicators) ids.push_back(id);
  for (const auto& [call, messages] : s.earlyByCall) ids.push_back(call.first);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (const std::uint64_t id : ids) s.cancel(id);
  wire_->close(bound);
}

}  // namespace byway
