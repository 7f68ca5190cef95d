// SPDX-License-Identifier: BSD-3-Clause
// A process's place in the network: the engine and its transport, shared by its communicators.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "byway/base/clock.h"

namespace byway {

class Engine;
class InprocFabric;

// Links slowed to a rate: the stand-in for a mesh of GPUs.
struct Pace {
  double bytesPerSecond = 0;  // of every directed pair; 0: unlimited
  Seconds latency = 0;        // from a send to the start of its transfer
  bool operator==(const Pace&) const = default;
};

// "RATE[,LATENCY_US]": bytes per second with an optional suffix k, M or G (decimal), microseconds.
// Throws Error{InvalidArgument}.
Pace parsePace(const std::string& text);

class Endpoint {
 public:
  // This process's, over UCX; one for each pace (nothing: BYWAY_PACE, else unpaced). Made on first
  // use and kept until the process ends. Throws Error{Resource} when UCX cannot start.
  static std::shared_ptr<Endpoint> process(std::optional<Pace> pace = std::nullopt);
  // One of several in this process, which meet on `fabric`. With a clock that is not the steady one
  // nothing runs by itself: the owner drives engine().step() (tests and `plan` tables).
  static std::shared_ptr<Endpoint> inproc(std::shared_ptr<InprocFabric> fabric, Pace pace = {},
                                          const Clock* clock = nullptr);

  Endpoint(std::shared_ptr<Engine> engine, Pace pace, bool selfDriven);
  ~Endpoint();

  const std::shared_ptr<Engine>& engine() const { return engine_; }
  const Pace& pace() const { return pace_; }
  bool selfDriven() const { return selfDriven_; }

 private:
  std::shared_ptr<Engine> engine_;
  Pace pace_;
  bool selfDriven_;
};

}  // namespace byway
