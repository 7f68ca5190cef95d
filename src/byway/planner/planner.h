// SPDX-License-Identifier: BSD-3-Clause
// From a call to a verified schedule, with the reasons.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "byway/base/clock.h"
#include "byway/planner/construction.h"
#include "byway/schedule/verify.h"

namespace byway {

struct PlanRequest {
  Collective collective = Collective::AllReduce;
  int ranks = 0;
  std::vector<Group> groups;
  std::vector<std::uint64_t> blockBytes;  // per block of makeShape(...), in buffer bytes
  double partialWeight = 1;               // accumulator bytes / element bytes
  // PARALLEL: how many groups of this size have a call of their own under way at the same time,
  // this one counted, each with the others' ranks as helpers. 1: the call has the links for itself.
  int liveGroups = 1;
  // A call waits for the plan: no packing LP is solved unless the direct way takes at least
  // kPackingPays seconds by link time, or there is none.
  bool onCallPath = false;
  // Bytes of stage memory on each rank; a call that needs more runs in rounds. 0: no limit.
  std::uint64_t stageQuota = 0;
  // Bytes that a rank may publish in memory that all ranks see. 0: they see none. Counts on the
  // topology "host" alone.
  double mappedBytes = 0;
  // Every rank has a core of its own: then large data goes in pieces, while both sides copy.
  bool coresForAll = true;
  std::string force;  // "": choose; "direct"; or the name of a candidate
};

struct ConsideredCandidate {
  std::string name;
  bool direct = false;
  double value = 0;        // as the construction's formula gives it
  Seconds estimate = 0;    // by formula; ranks the candidates
  Seconds predicted = -1;  // by predict(), where it was built; -1: it was not
};

struct Plan {
  std::shared_ptr<const VerifiedSchedule> chosen;
  std::shared_ptr<const VerifiedSchedule> direct;  // the best direct one; may be the same object
  Seconds predicted = 0, directPredicted = 0;
  std::vector<ConsideredCandidate> considered;
  bool relayed() const { return chosen->hash() != direct->hash(); }
};

// Relay is taken only when predict() says that it beats direct by kRelayMargin; ties go to fewer
// messages. Deterministic: ranks that ask the same get the same. Throws Error{InvalidArgument} for
// groups that overlap, ranks out of range, or members that no link joins.
inline constexpr double kRelayMargin = 0.02;
// Ten times what an LP of eight ranks takes at most (docs/planner.md).
inline constexpr Seconds kPackingPays = 0.5;
Plan plan(const PlanRequest& request, const Topology& topology);
// Whether plan() may solve a packing LP for it, whose answer can differ between processors. The
// same on every rank.
bool mayPack(const PlanRequest& request, const Topology& topology);

}  // namespace byway
