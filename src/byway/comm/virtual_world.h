// SPDX-License-Identifier: BSD-3-Clause
// All ranks in one thread on a virtual clock: exact times without waiting, for tables and tests.
#pragma once

#include <complex>
#include <memory>
#include <vector>

#include "byway/executor/engine.h"
#include "byway/planner/topology.h"

namespace byway {

// One collective for all ranks.
struct VirtualCall {
  std::shared_ptr<const VerifiedSchedule> schedule;
  std::vector<std::uint64_t> blockCounts;  // elements
  DType dtype = DType::Float32;
  ReduceOp op = ReduceOp::Sum;
  std::complex<double> factor{1.0, 0.0};
  std::vector<Segments> inputs, outputs;  // per rank; empty: phantom memory, only time passes
  int communicator = 0;                   // calls of different ones do not wait for each other
};

class VirtualWorld {
 public:
  // Links as the topology has them (rates and alpha; ports, bus and the other costs do not enter).
  // A message over a link of rate 0 fails its call with PeerLost.
  explicit VirtualWorld(const Topology& topology,
                        std::uint64_t stageQuota = std::uint64_t{64} << 20, int communicators = 1);
  ~VirtualWorld();

  // Seconds from the calls, made on all ranks at once, to the end of the last. Throws the first
  // error of any rank; Error{Internal} when nothing moves any more.
  Seconds run(const VirtualCall& call);
  // Several calls, all under way together; the time at which each has ended on all ranks.
  std::vector<Seconds> runAll(const std::vector<VirtualCall>& calls);
  std::uint64_t stagePeak(int rank) const;
  int ranks() const { return static_cast<int>(engines_.size()); }

 private:
  VirtualClock clock_;
  std::vector<std::shared_ptr<Engine>> engines_;
  std::vector<std::vector<Channel*>> channels_;  // per communicator, per rank
};

}  // namespace byway
