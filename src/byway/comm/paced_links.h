// SPDX-License-Identifier: BSD-3-Clause
// The links of a topology as paced wires ask for them: by peer, where a topology has ranks.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "byway/planner/topology.h"
#include "byway/transport/paced/paced_wire.h"

namespace byway {

// Of one process. Under the engine's lock once the wire is in use.
class PacedLinks {
 public:
  explicit PacedLinks(std::shared_ptr<const Topology> topology) : topology_(std::move(topology)) {}
  // What was placed first stays.
  void place(int self, PeerId peer, int rank);
  static PaceOptions options(const std::shared_ptr<PacedLinks>& self);
  const Topology& topology() const { return *topology_; }

 private:
  LinkRate rateFrom(PeerId peer) const;
  PortLimits ports() const;

  std::shared_ptr<const Topology> topology_;
  int self_ = -1;
  std::vector<int> ranks_;  // by peer; -1: not known
};

}  // namespace byway
