// SPDX-License-Identifier: BSD-3-Clause
// What a probe does to the links: messages from rank to rank, and how long they take. Between real
// processes (real_links.h), or in tests on a virtual clock.
#pragma once

#include <cstdint>
#include <vector>

#include "byway/base/clock.h"

namespace byway::tools {

struct Flow {
  int from = 0, to = 0;
  std::uint64_t bytes = 0;  // of each message
  int messages = 1;
};

class ProbeLinks {
 public:
  virtual ~ProbeLinks() = default;
  virtual int ranks() const = 0;
  // Runs all flows together, receives posted before anything is sent. For each the seconds from its
  // sender's first send until the sender knows that all has arrived; kNever over a missing link.
  // Every rank calls it alike and gets the same.
  virtual std::vector<Seconds> run(const std::vector<Flow>& flows) = 0;
  // Of the last run: seconds from the first send of any rank until all ranks know that all has
  // arrived. Ranks do not begin at one moment, so this and not the slowest flow is what all took.
  virtual Seconds whole() const = 0;
  // The part of those seconds that it takes to tell the sender.
  virtual Seconds acknowledgement() = 0;
  // The part of the time since the start for which a rank was ready and had no core; the worst.
  virtual double starved() = 0;
  // Bytes/s of one input of a sum; 0: free. The slowest rank's.
  virtual double reduceRate() = 0;
};

}  // namespace byway::tools
