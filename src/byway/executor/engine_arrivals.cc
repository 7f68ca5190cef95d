// SPDX-License-Identifier: BSD-3-Clause
// What the transport brings to an engine: data, control messages, losses of peers.
#include <string>
#include <utility>

#include "byway/base/log.h"
#include "byway/executor/engine.h"

namespace byway {
namespace {

constexpr std::int32_t kRankOfSender = -1;  // source: whichever rank the sending process is

}  // namespace

bool Engine::dataArrived(const MatchKey& key, const Stamp& stamp) {
  const auto it = channels_.find(key.communicator);
  return it == channels_.end() || it->second->dataArrived(key, stamp);
}

void Engine::controlArrived(PeerId from, std::span<const std::byte> payload) {
  const auto message = decode(payload);
  if (!message) {
    log(LogLevel::Warning, "byway: dropped a malformed control message");
    return;
  }
  const bool asks = message->kind == ControlKind::Ask;
  if (ended_.count(message->communicator) != 0) {  // too late to matter
    if (asks) answerFor(from, *message, Standing::Left);
    return;
  }
  const auto it = channels_.find(message->communicator);
  if (it != channels_.end()) {
    act(*it->second, from, *message);
  } else if (asks) {
    answerFor(from, *message, Standing::NotEntered);
  } else if (early_.size() < kMostEarlyMessages) {
    early_.emplace_back(from, *message);
  }
}

// For a communicator that is not here any more, or not yet.
void Engine::answerFor(PeerId asker, const ControlMessage& question, Standing standing) {
  // The asker knows which of its ranks this process is by its peer.
  transport_->control(
      asker, encode({ControlKind::Answer, question.communicator, kRankOfSender, ErrorCode::Timeout,
                     question.sequence, question.messages, encode(RankStanding{standing, 0, {}})}));
}

void Engine::peerLost(PeerId peer) {
  if (departed_.count(peer) == 0) lostAPeer_.store(true, std::memory_order_relaxed);
  for (const auto& [id, channel] : channels_) channel->peerLost(peer);
  changed_.notify_all();
}

void Engine::act(Channel& channel, PeerId from, const ControlMessage& received) {
  ControlMessage message = received;
  for (int r = 0; r < channel.ranks() && message.source == kRankOfSender; ++r) {
    if (r != channel.rank() && channel.peer(r) == from) message.source = r;
  }
  const bool isRank = message.source >= 0 && message.source < channel.ranks() &&
                      message.source != channel.rank() && channel.peer(message.source) == from;
  if (!isRank) {
    log(LogLevel::Warning, "byway: dropped a control message that does not come from its rank");
    return;
  }
  switch (message.kind) {
    case ControlKind::Broken:
      channel.reported(Error(
          message.code, "rank " + std::to_string(message.source) + " reported: " + message.text,
          channel.rank(), message.sequence));
      break;
    case ControlKind::Refused:
      channel.refused(message.source, static_cast<std::uint64_t>(message.sequence), message.text);
      break;
    case ControlKind::Goodbye:
      departed_.insert(from);
      channel.goodbye(message.source, static_cast<std::uint64_t>(message.sequence),
                      message.messages);
      break;
    case ControlKind::Ask:
      channel.asked(message);
      break;
    case ControlKind::Answer:
      channel.answered(message);
      break;
    case ControlKind::Wake:
      break;  // it has done its work
  }
}

}  // namespace byway
