// SPDX-License-Identifier: BSD-3-Clause
// Endpoints. Either side may connect first: the first message on a new endpoint is a Hello with the
// sender's address, so that it can be answered without anybody having connected back.
#include <utility>

#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/base/log.h"
#include "byway/transport/ucx/wire_impl.h"

namespace byway::ucx {

PeerId UcxWire::connect(std::span<const std::byte> address) {
  std::string why;
  const auto peer = unpack(address, why);
  if (!peer) throw Error(ErrorCode::InvalidArgument, why);
  const auto known = peerByProcess_.find(peer->process);
  if (known != peerByProcess_.end()) return known->second;
  if (isOver()) throw Error(ErrorCode::InvalidArgument, "the wire is closed");
  const PeerId id = addPeer(*peer);
  if (peer->process != own_.process) sayHello(id);
  return id;
}

PeerId UcxWire::addPeer(const ProcessAddress& address) {
  Peer peer;
  peer.process = address.process;
  // On one host UCX's error mode would leave shared memory for TCP, so processes that can be seen
  // are watched instead.
  const bool isSeen = address.host == own_.host && address.pids == own_.pids;
  peer.hasErrorMode = !isSeen;
  peer.readsMemory = isSeen && canReadOthers_;
  const auto id = static_cast<PeerId>(peers_.size());
  const bool isOther = address.process != own_.process;
  if (isSeen && isOther && !liveness_.watch(id, static_cast<pid_t>(address.pid), address.start)) {
    throw Error(ErrorCode::PeerLost, fmt::format("process {} has ended", address.pid));
  }
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  params.address = reinterpret_cast<const ucp_address_t*>(address.worker.data());
  params.err_mode = isSeen ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER;
  // Failures are reported by the operations they end; without a handler UCX would stop the process.
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.err_handler.cb = [](void* arg, ucp_ep_h endpoint, ucs_status_t) {
    auto& wire = *static_cast<UcxWire*>(arg);
    for (std::size_t i = 0; i < wire.peers_.size(); ++i) {
      if (wire.peers_[i].endpoint == endpoint) wire.failed_.push_back(static_cast<PeerId>(i));
    }
  };
  params.err_handler.arg = this;
  check(ucp_ep_create(worker_->get(), &params, &peer.endpoint), "reach a peer");
  peers_.push_back(peer);
  peerByProcess_.emplace(peer.process, id);
  return id;
}

void UcxWire::sayHello(PeerId id) {
  Outgoing& hello = startMessage(id);
  hello.payload = packedAddress_;
  AmHead head;
  head.type = AmType::Hello;
  head.process = own_.process;
  head.id = peerOf(id).process;
  post(hello, &head, sizeof head);
}

void UcxWire::helloArrived(const Inbound& inbound) {
  std::string why = "it is meant for another process";
  if (inbound.message.head.id != own_.process) {
    return log(LogLevel::Warning, fmt::format("dropped a greeting: {}", why));
  }
  const auto* begin = static_cast<const std::byte*>(inbound.data);
  const auto address = unpack({begin, inbound.bytes}, why);
  if (!address || address->process != inbound.message.head.process) {
    return log(LogLevel::Warning, fmt::format("dropped a greeting: {}", why));
  }
  if (peerByProcess_.contains(address->process)) return;
  try {
    addPeer(*address);
  } catch (const Error& error) {
    return log(LogLevel::Warning, fmt::format("cannot answer a peer: {}", error.what()));
  }
  // What it sent before its greeting came.
  std::deque<Inbound> waiting;
  waiting.swap(strangers_);
  for (const Inbound& early : waiting) {
    const bool isFromIt = early.message.head.process == address->process;
    (isFromIt ? inbox_ : strangers_).push_back(early);
  }
}

void UcxWire::losePeer(PeerId id) {
  Peer& peer = peerOf(id);
  if (peer.isLost) return;
  peer.isLost = true;
  log(LogLevel::Debug, fmt::format("the way to peer {} is lost", id));
  for (auto at = outgoing_.begin(); at != outgoing_.end();) {
    Outgoing& out = *at++;
    if (out.peer != id || !out.awaitsFinish) continue;
    completeOutgoing(out, out.isWithdrawn ? Outcome::Cancelled : Outcome::PeerLost);
    forget(out);
  }
  if (!peer.hasErrorMode) {
    orphan(id);
  } else if (peer.endpoint != nullptr) {
    // Its requests name an endpoint that is no more: UCX drops them instead of reading for them.
    ucp_request_param_t force{};
    force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    force.flags = UCP_EP_CLOSE_FLAG_FORCE;
    void* request = ucp_ep_close_nbx(std::exchange(peer.endpoint, nullptr), &force);
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
  }
  if (sink_ != nullptr) sink_->peerLost(id);
}

// UCX closes by force only what has its error mode. Here nothing needs to be closed: what UCX still
// wants to send are copies of ours, and reads that a process which has ended would have had to
// serve will never be served.
void UcxWire::orphan(PeerId id) {
  for (Outgoing& out : outgoing_) {
    if (out.peer != id || !out.isSending || out.isOrphan) continue;
    out.isOrphan = true;
    ++orphans_;
  }
  if (!peerOf(id).hasEnded || peerOf(id).readsMemory) return;  // the kernel ends the others
  for (Fetch& fetch : fetches_) {
    if (fetch.peer != id || std::exchange(fetch.isOrphan, true)) continue;
    due_.push(fetch.done, Outcome::PeerLost);
  }
}

}  // namespace byway::ucx
