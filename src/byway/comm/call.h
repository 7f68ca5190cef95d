// SPDX-License-Identifier: BSD-3-Clause
// From a user's call to an operation: validation, counts, plan, fingerprint.
#pragma once

#include <memory>
#include <vector>

#include "byway/comm/communicator_state.h"

namespace byway {

struct Call {
  Collective collective;
  std::vector<CallGroup> groups;
  DType dtype;
  Reduction reduction;
  bool barrier = false;
  int liveGroups = 0;  // CallOptions
  // The groups' counts are known for the blocks of this rank's Input and Output alone, others 0.
  bool ownCounts = false;
};

// Checks the call and starts it. What is wrong is thrown here, and the other ranks are told that
// this rank takes no part.
Work submitCall(CommunicatorState& state, const Call& call, const FusedArgs& mine,
                const CallOptions& options);
// The same for a call of all ranks whose blocks have one count, with less to do the second time.
Work submitWhole(CommunicatorState& state, const CallKey& key, const Reduction& reduction,
                 const Region& input, const Region& output, const CallOptions& options);
// The parts of submitCall, for calls that learn their plan later. prepareCall checks everything but
// the plan and throws what is wrong, having told nobody; planCall completes its result.
OperationRequest prepareCall(CommunicatorState& state, const Call& call, const FusedArgs& mine,
                             const CallOptions& options);
void planCall(CommunicatorState& state, const Call& call, OperationRequest& request);
// An all-to-all of all ranks by own counts whose ranks tell each other their counts first, so that
// any plan can serve it.
Work submitExchanged(CommunicatorState& state, const Call& call, const FusedArgs& mine,
                     const CallOptions& options);
// Has rank 0 make the plan and send it as data, on the way of two broadcasts, which take their
// numbers now. Settles `coming` on every rank.
void bringPlan(CommunicatorState& state, const std::shared_ptr<ComingPlan>& coming,
               const CallOptions& options);
// All ranks in order.
CallGroup everybody(const CommunicatorState& state);
// Throws the error of a check as this rank's, after it has taken the call's number.
[[noreturn]] void refuseCall(CommunicatorState& state, const CallOptions& options,
                             const Error& error);
// Runs a check that comes before submitCall(); what it throws takes the call's number, as there.
template <typename Check>
void checkOrRefuse(CommunicatorState& state, const CallOptions& options, const Check& check) {
  try {
    check();
  } catch (const Error& error) {
    refuseCall(state, options, error);
  }
}
// What a call's plan would be; prepared plans are kept for the calls to come.
std::shared_ptr<const Plan> planOf(CommunicatorState& state, const Call& call, bool prepare);

}  // namespace byway
