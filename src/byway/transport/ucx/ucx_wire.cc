// SPDX-License-Identifier: BSD-3-Clause
#include "byway/transport/ucx/ucx_wire.h"

#include <algorithm>

#include "byway/transport/ucx/wire_impl.h"

namespace byway {
namespace ucx {

UcxWire::UcxWire()
    : forksAtStart_(forks()),
      worker_(std::make_unique<Worker>()),
      waiter_(std::make_unique<Waiter>(worker_->events(), liveness_.events())),
      own_(makeProcessAddress()),
      canReadOthers_(ucxInfo().fetchWithoutCopyThread) {
  own_.worker = worker_->address();
  packedAddress_ = pack(own_);
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kAmId;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA;
  handler.cb = &UcxWire::amCallback;
  handler.arg = this;
  check(ucp_worker_set_am_recv_handler(worker_->get(), &handler), "take active messages");
}

// Until messages come no more, so that what came in is seen before what was completed; then copies
// may go on for a moment. Bounded, so that neither holds the caller.
bool UcxWire::turn() {
  constexpr int kMaxTurns = 64;
  constexpr Seconds kSlice = 100e-6;
  Seconds start = kNever;
  bool active = false;
  mustProgress_ = true;
  for (int i = 0; i < kMaxTurns; ++i) {
    const std::size_t before = inbox_.size();
    if (ucp_worker_progress(worker_->get()) == 0) {
      mustProgress_ = false;
      break;
    }
    active = true;
    if (inbox_.size() > before) continue;
    const Seconds now = clock().now();
    if (start == kNever) start = now;
    if (now > start + kSlice) break;
  }
  return active;
}

bool UcxWire::receive() {
  bool active = turn();
  for (std::size_t count = inbox_.size(); count > 0 && !inbox_.empty(); --count) {
    const Inbound inbound = inbox_.front();
    inbox_.pop_front();
    dispatch(inbound);
    active = true;
  }
  return active;
}

// A sleep that ended for it says so at once; one that never sleeps here asks a hundred times a
// second.
void UcxWire::lookForEnded() {
  constexpr Seconds kInterval = 0.01;
  constexpr Seconds kReceiveBound = 0.05;
  constexpr unsigned kTurns = 4;  // one of so many asks the clock, and the first after a sleep
  const bool isTold = waiter_->takeEnded();
  if (!isTold && !hasSlept_ && ++turns_ % kTurns != 0) return;
  hasSlept_ = false;
  const Seconds now = clock().now();
  if (!isTold && now < std::min(nextLook_, liveness_.nextLook())) return;
  nextLook_ = now + kInterval;
  const std::vector<PeerId> ended = liveness_.look(now);
  if (ended.empty()) return;
  // What they sent before is here, or as good as.
  while (receive() && clock().now() < now + kReceiveBound) {
  }
  for (const PeerId peer : ended) {
    peerOf(peer).hasEnded = true;
    if (peerOf(peer).isLost) orphan(peer);
    failed_.push_back(peer);
  }
}

bool UcxWire::progress() {
  if (isOver()) return due_.drain();
  bool active = receive();
  lookForEnded();
  // In the order in which they were found: the first may be why the others went. The list may grow.
  // NOLINTNEXTLINE(modernize-loop-convert)
  for (std::size_t i = 0; i < failed_.size(); ++i) losePeer(failed_[i]);
  failed_.clear();
  active |= expireWithdrawals();
  return due_.drain() || active;
}

Seconds UcxWire::nextTimer() const {
  constexpr Seconds kDoze = 1e-3;
  Seconds next = withdrawals_.empty() ? kNever : withdrawals_.front().first;
  if (orphans_ > 0) next = std::min(next, clock().now() + kDoze);
  return std::min(next, liveness_.nextLook());
}

bool UcxWire::arm() {
  hasSlept_ = true;
  if (isOver()) return due_.empty();
  if (mustProgress_ || !inbox_.empty() || !failed_.empty() || !due_.empty()) return false;
  // BUSY also while a peer's queue is full: the caller yields, so that the peer can run.
  // A process that ended empties its queue no more: then the timer looks instead.
  return ucp_worker_arm(worker_->get()) == UCS_OK || orphans_ > 0;
}

}  // namespace ucx

std::unique_ptr<Wire> makeUcxWire() { return std::make_unique<ucx::UcxWire>(); }

}  // namespace byway
