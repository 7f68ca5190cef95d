// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/point_to_point.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "byway/executor/channel.h"

namespace byway {
namespace {

constexpr std::uint64_t kPointToPointBit = std::uint64_t{1} << 63;

std::uint32_t tagOf(const MatchKey& key) { return static_cast<std::uint32_t>(key.sequence); }

Stamp stampOf(const PointToPoint& t) {
  return {kPointToPointBit, t.buffer.bytes(), static_cast<std::uint64_t>(t.dtype), 0, 0, 0};
}

// The dtype comes from the wire, so it may name nothing.
std::string nameOf(const Stamp& stamp) {
  const auto dtype = static_cast<DType>(static_cast<std::uint8_t>(stamp[2]));
  const std::size_t bytes = sizeOf(dtype);
  if (bytes == 0) return fmt::format("{} bytes", stamp[1]);
  return fmt::format("{} elements of {} ({} bytes)", stamp[1] / bytes, toString(dtype), stamp[1]);
}

bool accepts(const PointToPoint& receive, const MatchKey& key) {
  return receive.tag == tagOf(key) &&
         (receive.peer == kAnySource || receive.peer == static_cast<int>(key.source));
}

}  // namespace

bool isPointToPoint(const MatchKey& key) { return (key.sequence & kPointToPointBit) != 0; }

PointToPointOperation::PointToPointOperation(Channel& channel, PointToPointRequest request,
                                             Seconds deadline)
    : Operation(channel, kUnnumbered, {}, deadline, std::move(request.keepAlive)),
      remaining_(request.transfers.size()) {
  parts_.reserve(request.transfers.size());
  for (PointToPoint& transfer : request.transfers)
    parts_.push_back({std::move(transfer), -1, false, 0, 0});
}

// Receives first, so that a message to oneself finds its place.
bool PointToPointOperation::tryStart() {
  started_ = true;
  for (std::uint32_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].transfer.sends) channel_.messages().post(*this, i);
  }
  for (std::uint32_t i = 0; i < parts_.size() && !failed(); ++i) {
    if (parts_[i].transfer.sends) send(i);
  }
  return true;
}

std::span<const Buffer> PointToPointOperation::buffersOf(std::uint32_t index) const {
  const Segments& buffer = parts_[index].transfer.buffer;
  if (buffer.bytes() == 0) return {&emptyBuffer_, 1};
  return buffer.parts();
}

void PointToPointOperation::send(std::uint32_t index) {
  const PointToPoint& t = parts_[index].transfer;
  const auto buffers = buffersOf(index);
  const ConstBuffer one(buffers[0]);
  std::vector<ConstBuffer> several;
  if (buffers.size() > 1) several.assign(buffers.begin(), buffers.end());
  const auto from = several.empty() ? std::span(&one, 1) : std::span<const ConstBuffer>(several);
  const MatchKey key = channel_.messages().nextSend(t.peer, t.tag);
  issued(parts_[index], key);
  ++inFlight_;
  channel_.transport().send(channel_.peer(t.peer), key, stampOf(t), from,
                            {&PointToPointOperation::transferDone, this, index});
}

void PointToPointOperation::receive(std::uint32_t index, const MatchKey& key, const Stamp& stamp) {
  Part& part = parts_[index];
  const Stamp mine = stampOf(part.transfer);
  if (mine != stamp) {
    channel_.found(Error(
        ErrorCode::Mismatch,
        fmt::format("rank {} sends {} with tag {} to rank {}, which receives {}; make "
                    "both sides pass the same count and dtype",
                    key.source, nameOf(stamp), part.transfer.tag, channel_.rank(), nameOf(mine)),
        channel_.rank()));
    return;
  }
  part.source = static_cast<int>(key.source);
  issued(part, key);
  ++inFlight_;
  channel_.transport().recv(channel_.peer(part.source), key, buffersOf(index),
                            {&PointToPointOperation::transferDone, this, index});
}

void PointToPointOperation::transferDone(void* self, std::uint32_t index, Outcome outcome) {
  auto& operation = *static_cast<PointToPointOperation*>(self);
  Part& part = operation.parts_[index];
  --operation.inFlight_;
  if (outcome == Outcome::Ok) {
    part.over = true;
    --operation.remaining_;
    operation.trace(part);
    return;
  }
  if (operation.failed()) return;
  const bool sends = part.transfer.sends;
  operation.channel_.transferFailed(operation, sends, sends ? part.transfer.peer : part.source,
                                    outcome);
}

bool PointToPointOperation::awaitsMessageOf(int rank) const {
  return std::any_of(parts_.begin(), parts_.end(), [rank](const Part& part) {
    return !part.transfer.sends && part.source < 0 && part.transfer.peer == rank;
  });
}

std::set<int> PointToPointOperation::waitsFor() const {
  std::set<int> ranks;
  for (const Part& part : parts_) {
    if (part.over) continue;
    if (part.transfer.peer != kAnySource) {
      ranks.insert(part.transfer.peer);
      continue;
    }
    for (int r = 0; r < channel_.ranks(); ++r) {
      if (r != channel_.rank()) ranks.insert(r);
    }
  }
  return ranks;
}

bool PointToPointOperation::receives() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) {
    return !part.transfer.sends && part.source >= 0 && !part.over;
  });
}

std::string PointToPointOperation::outstanding() const {
  std::set<std::string> what;
  for (const Part& part : parts_) {
    if (part.over) continue;
    const PointToPoint& t = part.transfer;
    what.insert(t.sends ? fmt::format("rank {} has not received tag {}", t.peer, t.tag)
                : t.peer == kAnySource ? fmt::format("no rank has sent tag {}", t.tag)
                                       : fmt::format("rank {} has not sent tag {}", t.peer, t.tag));
  }
  return fmt::format("{}", fmt::join(what, "; "));
}

std::string PointToPointOperation::describe() const {
  if (parts_.size() != 1) return fmt::format("a batch of {} sends and receives", parts_.size());
  const PointToPoint& t = parts_[0].transfer;
  if (t.peer == kAnySource) return fmt::format("recv of {} from any rank", nameOf(stampOf(t)));
  return fmt::format("{} of {} {} rank {}", t.sends ? "send" : "recv", nameOf(stampOf(t)),
                     t.sends ? "to" : "from", t.peer);
}

void PointToPointOperation::describe(CallRecord& record) const {
  record.parts = static_cast<std::uint32_t>(parts_.size());
  record.bytes = 0;
  for (const Part& part : parts_) record.bytes += part.transfer.buffer.bytes();
  if (parts_.empty()) return;
  const PointToPoint& first = parts_[0].transfer;
  record.sends = first.sends;
  record.peer = first.peer;
  record.tag = first.tag;
}

void PointToPointOperation::issued(Part& part, const MatchKey& key) {
  if (channel_.trace() == nullptr) return;
  part.number = key.transfer;
  part.issued = channel_.transport().clock().now();
}

void PointToPointOperation::trace(const Part& part) const {
  if (channel_.trace() == nullptr) return;
  TraceLog::Transfer transfer;
  transfer.id = part.number;
  transfer.tag = part.transfer.tag;
  transfer.sends = part.transfer.sends;
  transfer.peer = transfer.sends ? part.transfer.peer : part.source;
  transfer.bytes = part.transfer.buffer.bytes();
  transfer.pieces = 1;
  transfer.issued = part.issued;
  transfer.done = channel_.transport().clock().now();
  channel_.trace()->add(transfer);
}

void PointToPointOperation::release() {
  channel_.messages().withdraw(*this);
  Operation::release();
}

MatchKey MessageOrder::nextSend(int to, std::uint32_t tag) {
  return {channel_.id(), kPointToPointBit | tag, sent_[{to, tag}]++,
          static_cast<std::uint32_t>(channel_.rank())};
}

namespace {

template <typename Map>
std::uint64_t countOf(const Map& counts, int rank) {
  std::uint64_t sum = 0;
  for (auto at = counts.lower_bound({rank, 0}); at != counts.end() && at->first.first == rank;
       ++at) {
    sum += at->second;
  }
  return sum;
}

}  // namespace

std::uint64_t MessageOrder::sentTo(int rank) const { return countOf(sent_, rank); }
std::uint64_t MessageOrder::acceptedFrom(int rank) const { return countOf(accepted_, rank); }

void MessageOrder::arrived(const MatchKey& key, const Stamp& stamp) {
  const Stream stream{static_cast<int>(key.source), tagOf(key)};
  if (key.source >= static_cast<std::uint32_t>(channel_.ranks())) return;
  std::uint32_t& next = accepted_[stream];
  if (key.transfer != next) {
    ahead_[stream].try_emplace(key.transfer, Waiting{key, stamp});
    return;
  }
  ++next;
  accept({key, stamp});
  const auto ahead = ahead_.find(stream);
  if (ahead == ahead_.end()) return;
  for (auto it = ahead->second.find(next); it != ahead->second.end();
       it = ahead->second.find(next)) {
    const Waiting message = it->second;
    ahead->second.erase(it);
    ++next;
    accept(message);
  }
  if (ahead->second.empty()) ahead_.erase(ahead);
}

void MessageOrder::accept(const Waiting& message) {
  for (auto it = posted_.begin(); it != posted_.end(); ++it) {
    const Posted posted = *it;
    if (!accepts(posted.operation->part(posted.index), message.key)) continue;
    posted_.erase(it);
    return posted.operation->receive(posted.index, message.key, message.stamp);
  }
  waiting_.push_back(message);
}

void MessageOrder::post(PointToPointOperation& operation, std::uint32_t index) {
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
    const Waiting message = *it;
    if (!accepts(operation.part(index), message.key)) continue;
    waiting_.erase(it);
    return operation.receive(index, message.key, message.stamp);
  }
  posted_.push_back({&operation, index});
}

void MessageOrder::withdraw(const PointToPointOperation& operation) {
  posted_.remove_if([&](const Posted& posted) { return posted.operation == &operation; });
}

}  // namespace byway
