// SPDX-License-Identifier: BSD-3-Clause
// The end: what must leave leaves, within the bound; then UCX is taken away from under the rest.
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "byway/transport/ucx/wire_impl.h"

namespace byway::ucx {

UcxWire::~UcxWire() {
  close(0);
  if (!isClosed_) (void)worker_.release();  // the parent's
}

bool UcxWire::isSettled() const {
  const bool reads = std::any_of(fetches_.begin(), fetches_.end(),
                                 [](const Fetch& fetch) { return !fetch.isOrphan; });
  return outgoing_.size() == orphans_ && !reads && inbox_.empty() && due_.empty();
}

void UcxWire::settle(Seconds deadline) {
  constexpr int kMilliseconds = 1;
  pollfd events{worker_->events(), POLLIN, 0};
  do {
    if (progress()) continue;
    if (arm()) {
      poll(&events, 1, kMilliseconds);
    } else {
      sched_yield();
    }
  } while (!isSettled() && clock().now() < deadline);
}

void UcxWire::close(Seconds bound) {
  if (isOver()) return;
  const Seconds deadline = clock().now() + std::max(bound, 0.0);
  std::vector<SendId> announced;
  for (const auto& [id, out] : announcements_) announced.push_back(id);
  for (const SendId id : announced) withdraw(id);
  settle(deadline);

  // The memory of fetches under way is the caller's again only when UCX cannot write it any more.
  closeEndpoints(deadline);
  isClosed_ = true;
  releaseAll();
  waiter_->wake();
  worker_.reset();
  for (const Fetch& fetch : fetches_) {
    if (!fetch.isOrphan) due_.push(fetch.done, Outcome::Cancelled);
  }
  fetches_.clear();
  outgoing_.clear();
  announcements_.clear();
  inbox_.clear();
  strangers_.clear();
  unfinished_.clear();
  while (due_.drain()) {
  }
}

// Gives back what belongs to UCX.
void UcxWire::releaseAll() {
  for (auto& [handle, incoming] : unfinished_) {
    for (ucp_rkey_h key : incoming->keys) {
      if (key != nullptr) ucp_rkey_destroy(key);
    }
    if (incoming->isEager) release(incoming->data);
  }
  for (const Inbound& inbound : inbox_) release(inbound.data);
  for (const Inbound& inbound : strangers_) release(inbound.data);
  for (auto& [id, out] : announcements_) {
    due_.push(out->done, Outcome::Cancelled);
    for (ucp_mem_h region : out->regions) ucp_mem_unmap(worker_->context(), region);
  }
}

void UcxWire::closeEndpoints(Seconds deadline) {
  std::vector<void*> requests;
  for (Peer& peer : peers_) {
    if (peer.endpoint == nullptr || peer.isLost) continue;
    ucp_request_param_t flush{};
    void* request = ucp_ep_close_nbx(std::exchange(peer.endpoint, nullptr), &flush);
    if (UCS_PTR_IS_PTR(request)) requests.push_back(request);
  }
  auto isOver = [](void* request) {
    if (ucp_request_check_status(request) == UCS_INPROGRESS) return false;
    ucp_request_free(request);
    return true;
  };
  for (;;) {
    requests.erase(std::remove_if(requests.begin(), requests.end(), isOver), requests.end());
    if (requests.empty() || clock().now() >= deadline) break;
    if (ucp_worker_progress(worker_->get()) == 0) sched_yield();
  }
  for (void* request : requests) ucp_request_free(request);
}

}  // namespace byway::ucx
