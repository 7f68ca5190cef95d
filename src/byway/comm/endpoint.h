// SPDX-License-Identifier: BSD-3-Clause
// A process's place in the network: the engine and its transport, shared by its communicators.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "byway/base/clock.h"

namespace byway {

class Engine;
class InprocFabric;
class PacedLinks;
struct Topology;

// Links slowed to a rate: the stand-in for a mesh of GPUs, or for a switch.
struct Pace {
  double bytesPerSecond = 0;  // of every directed pair; 0: unlimited
  Seconds latency = 0;        // from a send to the start of its transfer
  // Instead: each link its own rate or none, ports their limits, and alpha as the latency. Of the
  // ranks of the job, as the lists of Communicator::create() number them.
  std::shared_ptr<const Topology> links = {};
  static Pace of(Topology topology);
  bool operator==(const Pace& other) const;
  std::string text() const;  // differs where paces do
};

// "RATE[,LATENCY_US]": bytes per second with an optional suffix k, M or G (decimal), microseconds.
// Or a topology: "mesh:N...", "switch:N...", or the path of a file, which holds a "/" or ends in
// ".json". Throws Error{InvalidArgument}.
Pace parsePace(const std::string& text);

class Endpoint {
 public:
  // This process's, over UCX; one for each pace (nothing: BYWAY_PACE, else unpaced). Made on first
  // use and kept until the process ends. After the death of a peer it is another one than before,
  // so ask again for every communicator. Throws Error{Resource} when UCX cannot start.
  static std::shared_ptr<Endpoint> process(std::optional<Pace> pace = std::nullopt);
  // One of several in this process, which meet on `fabric`. With a clock that is not the steady one
  // nothing runs by itself: the owner drives engine().step() (tests and `plan` tables).
  static std::shared_ptr<Endpoint> inproc(std::shared_ptr<InprocFabric> fabric, Pace pace = {},
                                          const Clock* clock = nullptr);

  Endpoint(std::shared_ptr<Engine> engine, Pace pace, std::shared_ptr<PacedLinks> links,
           bool selfDriven);
  ~Endpoint();

  const std::shared_ptr<Engine>& engine() const { return engine_; }
  const Pace& pace() const { return pace_; }
  bool selfDriven() const { return selfDriven_; }
  // Tells which ranks of the job this process and its peers are, before a channel to them is
  // opened; what was told first stays. Throws Error{InvalidArgument} for ranks that the pace's
  // links do not have.
  void place(int self, const std::vector<std::int32_t>& peers, const std::vector<int>& ranks);

 private:
  std::shared_ptr<Engine> engine_;
  Pace pace_;
  std::shared_ptr<PacedLinks> links_;  // null without Pace::links
  bool selfDriven_;
};

}  // namespace byway
