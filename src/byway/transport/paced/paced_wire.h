// SPDX-License-Identifier: BSD-3-Clause
// Any wire, with every directed pair slowed to a link's rate and latency: the stand-in for a mesh.
//
// A link (u, v) is busy with a message from
//     start = max(link free, the header's send time + latency, receive posted)
// until start + bytes / rate, in the order in which messages were matched; nothing measured enters
// the clock, so a late wake-up is caught up and not accumulated. All of it happens at the receiver.
//
// Port limits: a sender's data messages pass its egress one after another and are sent when their
// turn comes; a receiver's pass its ingress from `start` on, in the order of matching, later ones
// in the gaps.
#pragma once

#include <functional>
#include <memory>

#include "byway/transport/wire.h"

namespace byway {

struct LinkRate {
  double bytesPerSecond = 0;  // 0: unlimited
  Seconds latency = 0;
  bool missing = false;  // messages end with PeerLost
};

// Of this process, bytes/s; 0: none.
struct PortLimits {
  double egress = 0, ingress = 0;
};

struct PaceOptions {
  // The link from `peer` to this process.
  std::function<LinkRate(PeerId peer)> rateFrom;
  std::function<PortLimits()> ports;  // null: no limits
  // Data of active links is fetched in steps of one tick, all links together; 0 fetches a whole
  // message when it starts (right on a virtual clock).
  Seconds tick = 0.002;
  // This process's offset within a tick, as a fraction: spreads the ranks of a host.
  double phase = 0;
};

std::unique_ptr<Wire> makePacedWire(std::unique_ptr<Wire> inner, PaceOptions options);

}  // namespace byway
