// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include "byway/transport/ucx/wire_impl.h"

namespace byway::ucx {
namespace {

// How long a peer may take to answer a withdrawal. With the half second in which ranks say who
// holds up a call, that call still ends within a second of its deadline.
constexpr Seconds kAnswerSeconds = 0.4;
static_assert(kAnswerSeconds <= Wire::kWithdrawBound);

bool isPhantom(std::span<const ConstBuffer> pieces) {
  for (const ConstBuffer& piece : pieces) {
    if (piece.bytes > 0 && piece.kind != MemoryKind::Phantom) return false;
  }
  return !pieces.empty();
}

}  // namespace

UcxWire::Outgoing& UcxWire::startMessage(PeerId peer) {
  Outgoing& out = outgoing_.emplace_back();
  out.self = std::prev(outgoing_.end());
  out.wire = this;
  out.peer = peer;
  return out;
}

SendId UcxWire::send(PeerId peer, const WireHeader& header, std::span<const ConstBuffer> pieces,
                     bool eager, Completion done) {
  if (isOver() || peerOf(peer).isLost) {
    due_.push(done, isOver() ? Outcome::Cancelled : Outcome::PeerLost);
    return 0;
  }
  AmMessage message = toAmMessage(header);
  message.head.process = own_.process;
  message.head.type = eager ? AmType::Eager : AmType::Announce;
  Outgoing& out = startMessage(peer);
  if (eager) {
    // Always a copy: a peer that does not run cannot keep the caller's memory.
    message.head.isPhantom = isPhantom(pieces) ? 1 : 0;
    if (message.head.isPhantom == 0) {
      out.payload.resize(bytesOf(pieces));
      gatherPieces(pieces, out.payload.data());
    }
    const bool isPosted = post(out, &message, sizeof message);
    due_.push(done, isPosted ? Outcome::Ok : Outcome::PeerLost);
    return 0;
  }
  out.done = done;
  if (!announce(out, pieces)) {
    due_.push(done, Outcome::PeerLost);
    out.isSending = false;
    forget(out);
    return 0;
  }
  const SendId id = ++lastId_;
  out.id = id;
  out.awaitsFinish = true;
  message.head.id = id;
  announcements_.emplace(id, &out);
  post(out, &message, sizeof message);
  return id;
}

bool UcxWire::announce(Outgoing& out, std::span<const ConstBuffer> pieces) {
  if (pieces.size() > kMaxPieces && !isPhantom(pieces)) {
    const std::size_t bytes = bytesOf(pieces);
    out.staging = staging_.take(bytes);
    gatherPieces(pieces, out.staging.memory.get());
    return map(out, ConstBuffer(out.staging.memory.get(), bytes));
  }
  if (isPhantom(pieces)) {
    RemotePiece nothing;
    nothing.isPhantom = true;
    for (const ConstBuffer& piece : pieces) nothing.bytes += piece.bytes;
    appendPiece(out.payload, nothing);
    return true;
  }
  for (const ConstBuffer& piece : pieces) {
    if (piece.bytes > 0 && !map(out, piece)) return false;
  }
  return true;
}

bool UcxWire::map(Outgoing& out, const ConstBuffer& piece) {
  RemotePiece entry;
  entry.bytes = piece.bytes;
  entry.isPhantom = piece.kind == MemoryKind::Phantom;
  if (!entry.isPhantom) {
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                        UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.address = const_cast<void*>(piece.address);
    params.length = piece.bytes;
    params.memory_type = UCS_MEMORY_TYPE_HOST;
    ucp_mem_h region = nullptr;
    if (ucp_mem_map(worker_->context(), &params, &region) != UCS_OK) return false;
    out.regions.push_back(region);
    void* key = nullptr;
    std::size_t bytes = 0;
    if (ucp_rkey_pack(worker_->context(), region, &key, &bytes) != UCS_OK) return false;
    const auto* begin = static_cast<const std::byte*>(key);
    entry.address = reinterpret_cast<std::uintptr_t>(piece.address);
    entry.key.assign(begin, begin + bytes);
    ucp_rkey_buffer_release(key);
  }
  appendPiece(out.payload, entry);
  return true;
}

bool UcxWire::post(Outgoing& out, const void* header, std::size_t headerBytes) {
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_COPY_HEADER;
  param.cb.send = &UcxWire::sentCallback;
  param.user_data = &out;
  mustProgress_ = true;
  void* request = ucp_am_send_nbx(peerOf(out.peer).endpoint, kAmId, header, headerBytes,
                                  out.payload.data(), out.payload.size(), &param);
  // No request: it has completed, and no callback comes.
  if (!UCS_PTR_IS_PTR(request)) sent(out, UCS_PTR_STATUS(request));
  return !UCS_PTR_IS_ERR(request);
}

void UcxWire::sentCallback(void* request, ucs_status_t status, void* out) noexcept {
  ucp_request_free(request);
  auto& message = *static_cast<Outgoing*>(out);
  message.wire->sent(message, status);
}

void UcxWire::sent(Outgoing& out, ucs_status_t status) {
  out.isSending = false;
  if (status != UCS_OK) failed_.push_back(out.peer);  // completes what waits for an answer
  forget(out);
}

void UcxWire::sendNote(PeerId peer, AmType type, std::uint64_t id, Outcome outcome) {
  if (isOver() || peerOf(peer).isLost) return;
  AmHead head;
  head.type = type;
  head.process = own_.process;
  head.id = id;
  head.outcome = static_cast<std::uint8_t>(outcome);
  post(startMessage(peer), &head, sizeof head);
}

void UcxWire::finished(SendId id, PeerId from, Outcome outcome) {
  const auto at = announcements_.find(id);
  if (at == announcements_.end() || at->second->peer != from) return;
  Outgoing& out = *at->second;
  completeOutgoing(out, out.isWithdrawn && outcome != Outcome::Ok ? Outcome::Cancelled : outcome);
  forget(out);
}

void UcxWire::completeOutgoing(Outgoing& out, Outcome outcome) {
  out.awaitsFinish = false;
  announcements_.erase(out.id);
  for (ucp_mem_h region : out.regions) ucp_mem_unmap(worker_->context(), region);
  out.regions.clear();
  due_.push(out.done, outcome);
}

void UcxWire::forget(Outgoing& out) {
  if (out.isSending || out.awaitsFinish) return;
  for (ucp_mem_h region : out.regions) ucp_mem_unmap(worker_->context(), region);
  if (out.isOrphan) --orphans_;
  staging_.give(std::move(out.staging));
  outgoing_.erase(out.self);
}

void UcxWire::withdraw(SendId id) {
  const auto at = announcements_.find(id);
  if (isOver() || at == announcements_.end() || at->second->isWithdrawn) return;
  at->second->isWithdrawn = true;
  withdrawals_.emplace_back(clock().now() + kAnswerSeconds, id);
  sendNote(at->second->peer, AmType::Withdrawn, id, Outcome::Cancelled);
}

// Peers that did not answer. One that reads this process's memory by itself can at worst read
// something else; for others UCX would read here on their behalf, which must be prevented.
bool UcxWire::expireWithdrawals() {
  bool any = false;
  while (!withdrawals_.empty()) {
    const auto [deadline, id] = withdrawals_.front();
    const auto at = announcements_.find(id);
    if (at != announcements_.end()) {
      if (clock().now() < deadline) break;
      Outgoing& out = *at->second;
      const PeerId peer = out.peer;
      completeOutgoing(out, Outcome::Cancelled);
      forget(out);
      if (!peerOf(peer).readsMemory) losePeer(peer);
      any = true;
    }
    withdrawals_.pop_front();
  }
  return any;
}

}  // namespace byway::ucx
