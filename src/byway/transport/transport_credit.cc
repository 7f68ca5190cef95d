// SPDX-License-Identifier: BSD-3-Clause
// Credit: how much a peer may send before this process asked for it.
//
//   sender    eager only while bytes and messages are left for this peer; else announced, which
//             needs none, so nobody ever waits for credit
//   receiver  owes what it took in; every header to that peer carries the debt back; from a quarter
//             of the limits on a header of its own does
#include <algorithm>

#include "byway/transport/transport_state.h"

namespace byway {

Transport::State::Peer& Transport::State::peer(PeerId id) {
  const auto index = static_cast<std::size_t>(id);
  if (index >= peers.size()) {
    Peer fresh;
    fresh.eagerBytes = static_cast<std::int64_t>(options.eagerCredit);
    fresh.eagerMessages = options.eagerMessages;
    peers.resize(index + 1, fresh);
  }
  return peers[index];
}

bool Transport::State::takeCredit(PeerId id, std::uint64_t bytes) {
  Peer& to = peer(id);
  if (bytes > options.eagerBytes || to.eagerMessages < 1) return false;
  if (to.eagerBytes < static_cast<std::int64_t>(bytes)) return false;
  to.eagerBytes -= static_cast<std::int64_t>(bytes);
  --to.eagerMessages;
  return true;
}

void Transport::State::addOwed(PeerId id, WireHeader& header) {
  Peer& to = peer(id);
  header.creditBytes = std::exchange(to.owedBytes, 0);
  header.creditMessages = std::exchange(to.owedMessages, 0);
}

void Transport::State::returnCredit(PeerId id, std::uint64_t bytes) {
  Peer& to = peer(id);
  to.owedBytes += static_cast<std::uint32_t>(bytes);
  ++to.owedMessages;
  const bool much = std::uint64_t{to.owedBytes} * 4 >= options.eagerCredit ||
                    std::uint64_t{to.owedMessages} * 4 >= options.eagerMessages;
  if (!much || closed) return;
  WireHeader header;
  header.kind = MessageKind::Credit;
  addOwed(id, header);
  wire.send(id, header, {}, true, {});
}

void Transport::State::creditArrived(PeerId id, const WireHeader& header) {
  if (id < 0) return;
  Peer& to = peer(id);
  // A false header can at most restore the full credit.
  to.eagerBytes = std::min<std::int64_t>(to.eagerBytes + header.creditBytes,
                                         static_cast<std::int64_t>(options.eagerCredit));
  to.eagerMessages =
      std::min<std::int64_t>(to.eagerMessages + header.creditMessages, options.eagerMessages);
}

}  // namespace byway
