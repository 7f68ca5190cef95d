// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "byway/base/hash.h"
#include "byway/base/log.h"
#include "byway/transport/ucx/wire_impl.h"

namespace byway::ucx {
namespace {

constexpr std::size_t kMaxStrangers = 4096;

void dropLine(const char* why, std::size_t bytes) {
  log(LogLevel::Warning, fmt::format("dropped a message of {} bytes: {}", bytes, why));
}

}  // namespace

ucs_status_t UcxWire::amCallback(void* wire, const void* header, std::size_t headerBytes,
                                 void* data, std::size_t bytes,
                                 const ucp_am_recv_param_t* param) noexcept {
  auto& self = *static_cast<UcxWire*>(wire);
  const auto message = parseHeader({static_cast<const std::byte*>(header), headerBytes});
  if (!message || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    dropLine("not one of ours", bytes);
    return UCS_OK;
  }
  const bool keeps = bytes > 0;
  self.inbox_.push_back({*message, keeps ? data : nullptr, keeps ? bytes : 0});
  return keeps ? UCS_INPROGRESS : UCS_OK;
}

void UcxWire::release(void* data) {
  if (data != nullptr) ucp_am_data_release(worker_->get(), data);
}

void UcxWire::dispatch(Inbound inbound) {
  const AmHead& head = inbound.message.head;
  if (head.type == AmType::Hello) {
    helloArrived(inbound);
    return release(inbound.data);
  }
  const auto known = peerByProcess_.find(head.process);
  if (known == peerByProcess_.end()) {
    if (strangers_.size() < kMaxStrangers) return strangers_.push_back(inbound);
    dropLine("from an unknown process", inbound.bytes);
    return release(inbound.data);
  }
  const PeerId from = known->second;
  switch (head.type) {
    case AmType::Hello:
      return;
    case AmType::Eager:
      return eagerArrived(from, inbound);
    case AmType::Announce:
      announced(from, inbound);
      return release(inbound.data);
    case AmType::Finished:
      finished(head.id, from, static_cast<Outcome>(head.outcome));
      return release(inbound.data);
    case AmType::Withdrawn:
      withdrawn(from, head.id);
      return release(inbound.data);
  }
}

void UcxWire::eagerArrived(PeerId from, const Inbound& inbound) {
  const AmMessage& message = inbound.message;
  const WireHeader header = toWireHeader(message);
  const bool isWhole = message.head.isPhantom != 0
                           ? header.kind == MessageKind::Data && inbound.bytes == 0
                           : header.bytes == inbound.bytes;
  if (!isWhole) {
    dropLine("its size differs from its header's", inbound.bytes);
    return release(inbound.data);
  }
  auto incoming = std::make_unique<Incoming>();
  incoming->header = header;
  incoming->from = from;
  incoming->isEager = true;
  incoming->data = inbound.data;
  if (header.kind == MessageKind::Data) return deliver(std::move(incoming));
  const auto* begin = static_cast<const std::byte*>(inbound.data);
  if (sink_ != nullptr) sink_->arrived(arrivalOf(*incoming), {begin, inbound.bytes});
  release(inbound.data);
}

void UcxWire::announced(PeerId from, const Inbound& inbound) {
  const AmMessage& message = inbound.message;
  const auto* begin = static_cast<const std::byte*>(inbound.data);
  auto pieces = parsePieces({begin, inbound.bytes}, message.bytes);
  const std::uint64_t key = announcementKey(from, message.head.id);
  const auto kind = static_cast<MessageKind>(message.head.kind);
  if (!pieces || kind != MessageKind::Data || announcedHere_.contains(key)) {
    dropLine("a malformed announcement", inbound.bytes);
    return sendNote(from, AmType::Finished, message.head.id, Outcome::Cancelled);
  }
  auto incoming = std::make_unique<Incoming>();
  incoming->header = toWireHeader(message);
  incoming->from = from;
  incoming->id = message.head.id;
  incoming->pieces = std::move(*pieces);
  announcedHere_.emplace(key, incoming.get());
  deliver(std::move(incoming));
}

void UcxWire::withdrawn(PeerId from, std::uint64_t id) {
  const auto at = announcedHere_.find(announcementKey(from, id));
  // Unknown: it was finished, and the answer is on its way.
  if (at != announcedHere_.end()) sink_->withdrawn(arrivalOf(*at->second));
}

void UcxWire::deliver(std::unique_ptr<Incoming> incoming) {
  Incoming& message = *incoming;
  unfinished_.emplace(incoming.get(), std::move(incoming));
  const Arrival arrival = arrivalOf(message);
  if (sink_ != nullptr) return sink_->arrived(arrival, {});
  finish(message.from, arrival, Outcome::Cancelled);
}

Arrival UcxWire::arrivalOf(Incoming& incoming) const {
  Arrival arrival;
  arrival.header = incoming.header;
  arrival.eager = incoming.isEager;
  arrival.from = incoming.from;
  arrival.handle = &incoming;
  arrival.arrivedAt = clock().now();
  return arrival;
}

std::uint64_t UcxWire::announcementKey(PeerId from, std::uint64_t id) {
  // A peer's ids count from 1, so the upper bits are free; a false id meets a false message only.
  return (static_cast<std::uint64_t>(from) << 44) ^ id;
}

bool UcxWire::unpackKeys(Incoming& incoming) {
  if (!incoming.keys.empty()) return true;
  for (const RemotePiece& piece : incoming.pieces) {
    ucp_rkey_h key = nullptr;
    if (!piece.isPhantom) {
      const ucp_ep_h endpoint = peerOf(incoming.from).endpoint;
      if (ucp_ep_rkey_unpack(endpoint, piece.key.data(), &key) != UCS_OK) return false;
    }
    incoming.keys.push_back(key);
  }
  return true;
}

void UcxWire::fetch(PeerId from, const Arrival& arrival, std::uint64_t offset, Buffer to,
                    Completion done) {
  const auto at = unfinished_.find(arrival.handle);
  if (isOver() || at == unfinished_.end()) return due_.push(done, Outcome::Cancelled);
  Incoming& incoming = *at->second;
  const bool isPhantom = to.kind == MemoryKind::Phantom;
  if (isPhantom || incoming.isEager) {
    if (!isPhantom && incoming.data != nullptr && to.bytes > 0) {
      std::memcpy(to.address, static_cast<const std::byte*>(incoming.data) + offset, to.bytes);
    }
    return due_.push(done, Outcome::Ok);
  }
  if (peerOf(from).isLost || !unpackKeys(incoming)) return due_.push(done, Outcome::PeerLost);
  Fetch& fetch = fetches_.emplace_back();
  fetch.self = std::prev(fetches_.end());
  fetch.wire = this;
  fetch.peer = from;
  fetch.done = done;
  fetch.gets = 1;  // this function's own share, so that the last piece does not end it too early
  for (std::size_t i = 0; i < incoming.pieces.size() && to.bytes > 0; ++i) {
    const RemotePiece& piece = incoming.pieces[i];
    if (offset >= piece.bytes) {
      offset -= piece.bytes;
      continue;
    }
    Buffer part = to;
    part.bytes = std::min<std::uint64_t>(to.bytes, piece.bytes - offset);
    if (!piece.isPhantom) get(fetch, incoming, i, offset, part);
    to.address = static_cast<std::byte*>(to.address) + part.bytes;
    to.bytes -= part.bytes;
    offset = 0;
  }
  got(fetch, UCS_OK);
}

void UcxWire::get(Fetch& fetch, const Incoming& incoming, std::size_t piece, std::uint64_t offset,
                  Buffer to) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &UcxWire::gotCallback;
  param.user_data = &fetch;
  mustProgress_ = true;
  ++fetch.gets;
  void* request =
      ucp_get_nbx(peerOf(incoming.from).endpoint, to.address, to.bytes,
                  incoming.pieces[piece].address + offset, incoming.keys[piece], &param);
  if (!UCS_PTR_IS_PTR(request)) got(fetch, UCS_PTR_STATUS(request));
}

void UcxWire::gotCallback(void* request, ucs_status_t status, void* fetch) noexcept {
  ucp_request_free(request);
  auto& own = *static_cast<Fetch*>(fetch);
  own.wire->got(own, status);
}

void UcxWire::got(Fetch& fetch, ucs_status_t status) {
  if (status != UCS_OK) {
    fetch.outcome = Outcome::PeerLost;
    failed_.push_back(fetch.peer);  // a failed get poisons its endpoint
  }
  if (--fetch.gets > 0) return;
  if (!fetch.isOrphan) due_.push(fetch.done, fetch.outcome);
  fetches_.erase(fetch.self);
}

void UcxWire::finish(PeerId from, const Arrival& arrival, Outcome outcome) {
  const auto at = unfinished_.find(arrival.handle);
  if (isOver() || at == unfinished_.end()) return;
  const std::unique_ptr<Incoming> incoming = std::move(at->second);
  unfinished_.erase(at);
  for (ucp_rkey_h key : incoming->keys) {
    if (key != nullptr) ucp_rkey_destroy(key);
  }
  if (incoming->isEager) return release(incoming->data);
  announcedHere_.erase(announcementKey(from, incoming->id));
  sendNote(from, AmType::Finished, incoming->id, outcome);
}

}  // namespace byway::ucx
