// SPDX-License-Identifier: BSD-3-Clause
// Ranks as threads (or all driven by one thread) of one process.
#pragma once

#include <memory>

#include "byway/transport/wire.h"

namespace byway {

// The meeting place of the wires of one process. Thread-safe; outlives its wires.
class InprocFabric {
 public:
  InprocFabric();
  ~InprocFabric();
  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// A new wire on the fabric. With the SteadyClock sleep() blocks; with any other clock sleep() must
// not be called (one thread drives all wires and moves the clock itself).
std::unique_ptr<Wire> makeInprocWire(std::shared_ptr<InprocFabric> fabric, const Clock& clock);

}  // namespace byway
