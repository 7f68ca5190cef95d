// SPDX-License-Identifier: BSD-3-Clause
// The verifier's parts; verify.h is the public face.
#pragma once

#include <string>
#include <vector>

#include "byway/schedule/verify.h"

namespace byway {

class Findings {
 public:
  static constexpr std::size_t kMost = 16;
  void add(int rule, std::string what) {
    if (list_.size() < kMost) list_.push_back({rule, std::move(what)});
  }
  bool empty() const { return list_.empty(); }
  std::vector<Violation> take() && { return std::move(list_); }

 private:
  std::vector<Violation> list_;
};

// V1, V2, V3, V5 and the form of V10: whatever can be said of each item alone. The other parts may
// only be called when this found nothing.
void checkStructure(const Schedule& schedule, Findings& findings);
// V6 and V7.
void checkOrder(const Schedule& schedule, const DependenceGraph& graph, Findings& findings);
// V11, once the structure is right.
void checkMapped(const Schedule& schedule, Findings& findings);
// V4, V8, V9 and the values of V10, by a symbolic run in place and out of place at once.
void checkValues(const Schedule& schedule, Findings& findings);

}  // namespace byway
