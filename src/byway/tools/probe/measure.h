// SPDX-License-Identifier: BSD-3-Clause
// Measures links: what to send, how much, how often. Every rank comes to the same numbers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "byway/tools/probe/links.h"

namespace byway::tools {

struct Measurements {
  int ranks = 0;
  std::vector<double> links;  // [from * ranks + to], bytes/s; 0: no link
  // Of several links at once: bytes/s, and what the rates above (and for all links the ports) give.
  struct Sum {
    double measured = 0, expected = 0;
  };
  std::vector<Sum> egress, ingress;  // per rank
  Sum all;
  bool oneByOne = false;  // pairs disturbed each other and were measured singly
  Seconds alpha = 0, message = 0;
  double starved = 0;  // the part of the time for which a rank was ready and had no core
  double reduce = 0;

  double link(int from, int to) const {
    return links[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) +
                 static_cast<std::size_t>(to)];
  }
};

struct ProbeOptions {
  Seconds linkTime = 0.04;  // for which one measurement shall keep its links busy
  // The quickest counts, since what disturbs only makes slower. Repeated until the next one comes
  // close.
  int leastRepeats = 3, mostRepeats = 10;
  std::function<void(const std::string& what)> progress;
};

Measurements measure(ProbeLinks& links, const ProbeOptions& options);

}  // namespace byway::tools
