// SPDX-License-Identifier: BSD-3-Clause
#include "byway/transport/paced/paced_wire.h"

#include <unordered_map>
#include <utility>

#include "byway/transport/completion_queue.h"
#include "byway/transport/paced/flow.h"
#include "byway/transport/paced/port.h"

namespace byway {
namespace {

using paced::Flow;
using paced::Part;
using paced::Port;
using paced::TickGrid;

class PacedWire final : public Wire {
 public:
  PacedWire(std::unique_ptr<Wire> inner, PaceOptions options)
      : inner_(std::move(inner)),
        options_(std::move(options)),
        grid_(options_.tick, options_.phase) {}

  Address address() const override { return inner_->address(); }
  PeerId connect(std::span<const std::byte> address) override { return inner_->connect(address); }
  void setSink(WireSink* sink) override { inner_->setSink(sink); }
  SendId send(PeerId peer, const WireHeader& header, std::span<const ConstBuffer> pieces,
              bool eager, Completion done) override;
  void withdraw(SendId id) override { inner_->withdraw(id); }
  void fetch(PeerId from, const Arrival& arrival, std::uint64_t offset, Buffer to,
             Completion done) override;
  void abandon(const Arrival& arrival) override;
  void finish(PeerId from, const Arrival& arrival, Outcome outcome) override;

  bool progress() override;
  bool usesTimes() const override { return true; }
  Seconds nextTimer() const override;
  const Clock& clock() const override { return inner_->clock(); }
  std::size_t eagerLimit() const override { return inner_->eagerLimit(); }
  bool arm() override { return !mustServe_ && inner_->arm(); }
  void sleep(Seconds until) override { inner_->sleep(until); }
  void wake() override { inner_->wake(); }
  void close(Seconds bound) override;

 private:
  struct Link {
    bool isKnown = false;
    LinkRate rate;
    Seconds free = 0;
    std::deque<Flow*> queue;  // by start: the order in which messages were matched
  };
  // A slice's completion needs both ends; there is one of these for each flow.
  struct Entry {
    PacedWire* wire = nullptr;
    Flow flow;
  };

  Link& linkFrom(PeerId peer);
  PortLimits ports() const { return options_.ports ? options_.ports() : PortLimits{}; }
  void begin(Flow& flow, Link& link);
  void issue(Entry& entry, Seconds horizon);
  static void sliceDone(void* self, std::uint32_t tag, Outcome outcome);
  void deliver(Flow& flow, Outcome outcome);
  void serve(Seconds now);
  void unqueue(Flow& flow);
  Seconds dueAt(const Link& link) const;

  std::unique_ptr<Wire> inner_;
  PaceOptions options_;
  TickGrid grid_;
  std::vector<Link> links_;
  Port egress_, ingress_;
  std::unordered_map<void*, Entry> entries_;
  CompletionQueue due_;
  bool mustServe_ = false;  // something changed that no timer announces
};

PacedWire::Link& PacedWire::linkFrom(PeerId peer) {
  const auto index = static_cast<std::size_t>(peer);
  if (index >= links_.size()) links_.resize(index + 1);
  Link& link = links_[index];
  if (!link.isKnown) {
    link.isKnown = true;
    link.rate = options_.rateFrom(peer);
  }
  return link;
}

SendId PacedWire::send(PeerId peer, const WireHeader& header, std::span<const ConstBuffer> pieces,
                       bool eager, Completion done) {
  const double egress = ports().egress;
  if (egress <= 0 || header.kind != MessageKind::Data) {
    return inner_->send(peer, header, pieces, eager, done);
  }
  egress_.forget(clock().now());
  WireHeader later = header;
  const auto bytes = static_cast<double>(header.bytes);
  later.sentAt = egress_.reserve(header.sentAt, bytes / egress).start;
  return inner_->send(peer, later, pieces, eager, done);
}

void PacedWire::begin(Flow& flow, Link& link) {
  if (link.rate.missing) {
    flow.outcome = Outcome::PeerLost;
    return;
  }
  // Another host's clock says nothing here. Behind an egress limit messages are queued ahead.
  constexpr Seconds kOld = 3600, kQueued = 3600, kAhead = 1, kLate = 10;
  const Seconds now = clock().now();
  const Seconds sentAt = flow.arrival.header.sentAt;
  const bool isSane = sentAt <= now + (options_.ports ? kQueued : kAhead) && sentAt >= now - kOld;
  const Seconds sent = isSane ? sentAt : flow.arrival.arrivedAt;
  flow.rate = link.rate.bytesPerSecond;
  flow.start = std::max({link.free, sent + link.rate.latency, flow.arrival.postedAt});
  if (const double ingress = ports().ingress; ingress > 0) {
    ingress_.forget(now - kLate);
    const auto bytes = static_cast<double>(flow.arrival.header.bytes);
    const auto span = ingress_.reserve(flow.start, bytes / ingress);
    flow.start = span.start;
    const double rate = bytes / (span.end - span.start);
    if (flow.rate <= 0 || rate < flow.rate) flow.rate = rate;
  }
  flow.end = flow.timeOf(flow.arrival.header.bytes);
  link.free = flow.end;
}

void PacedWire::fetch(PeerId from, const Arrival& arrival, std::uint64_t offset, Buffer to,
                      Completion done) {
  Link& link = linkFrom(from);
  auto [at, isNew] = entries_.try_emplace(arrival.handle);
  Entry& entry = at->second;
  Flow& flow = entry.flow;
  if (isNew) {
    entry.wire = this;
    flow.arrival = arrival;
    begin(flow, link);
  }
  if (!flow.isQueued) {
    flow.isQueued = true;
    link.queue.push_back(&flow);
  }
  flow.parts.push_back({offset, to, done, 0});
  issue(entry, grid_.after(clock().now()));
  if (flow.inFlight == 0) mustServe_ = true;  // a part of no bytes, or a stopped flow
}

void PacedWire::issue(Entry& entry, Seconds horizon) {
  Flow& flow = entry.flow;
  if (flow.outcome != Outcome::Ok) return;
  flow.horizon = horizon;
  const std::uint64_t carried = flow.carriedAt(horizon);
  for (std::size_t i = 0; i < flow.parts.size(); ++i) {
    Part& part = flow.parts[i];
    if (carried <= part.offset) continue;
    const std::uint64_t upTo = std::min<std::uint64_t>(carried - part.offset, part.to.bytes);
    if (upTo <= part.issued) continue;
    Buffer slice = part.to;
    slice.bytes = upTo - part.issued;
    if (slice.kind == MemoryKind::Host) {
      slice.address = static_cast<std::byte*>(part.to.address) + part.issued;
    }
    const std::uint64_t at = part.offset + part.issued;
    part.issued = upTo;
    ++flow.inFlight;
    inner_->fetch(flow.arrival.from, flow.arrival, at, slice,
                  {&PacedWire::sliceDone, &entry, static_cast<std::uint32_t>(i)});
  }
}

void PacedWire::sliceDone(void* self, std::uint32_t /*tag*/, Outcome outcome) {
  Entry& entry = *static_cast<Entry*>(self);
  if (entry.flow.outcome == Outcome::Ok) entry.flow.outcome = outcome;
  --entry.flow.inFlight;
  entry.wire->mustServe_ = true;
}

void PacedWire::abandon(const Arrival& arrival) {
  inner_->abandon(arrival);
  const auto at = entries_.find(arrival.handle);
  if (at == entries_.end()) return;
  Flow& flow = at->second.flow;
  if (flow.outcome == Outcome::Ok) flow.outcome = Outcome::Cancelled;
  Link& link = linkFrom(arrival.from);
  if (!link.queue.empty() && link.queue.back() == &flow) {
    link.free = std::max(flow.start, std::min(flow.end, clock().now()));
  }
  mustServe_ = true;
}

void PacedWire::finish(PeerId from, const Arrival& arrival, Outcome outcome) {
  const auto at = entries_.find(arrival.handle);
  if (at != entries_.end()) {
    unqueue(at->second.flow);
    entries_.erase(at);
  }
  inner_->finish(from, arrival, outcome);
}

void PacedWire::unqueue(Flow& flow) {
  if (!flow.isQueued) return;
  auto& queue = linkFrom(flow.arrival.from).queue;
  queue.erase(std::find(queue.begin(), queue.end(), &flow));
  flow.isQueued = false;
}

void PacedWire::deliver(Flow& flow, Outcome outcome) {
  for (const Part& part : flow.parts) due_.push(part.done, outcome);
  flow.parts.clear();
  unqueue(flow);
}

void PacedWire::serve(Seconds now) {
  mustServe_ = false;
  const Seconds horizon = grid_.after(now);
  for (Link& link : links_) {
    for (std::size_t i = 0; i < link.queue.size();) {
      Flow& flow = *link.queue[i];
      const bool isStopped = flow.outcome != Outcome::Ok;
      if (!isStopped && flow.start < horizon) issue(entries_.at(flow.arrival.handle), horizon);
      if (flow.isDue(now)) {
        deliver(flow, flow.outcome);
      } else {
        ++i;
      }
    }
  }
}

bool PacedWire::progress() {
  bool active = inner_->progress();
  const Seconds now = clock().now();
  if (mustServe_ || now >= nextTimer()) {
    serve(now);
    active = true;
  }
  return due_.drain() || active;
}

// Flows behind one that is not moving are due later, or share a tick with it that was served.
Seconds PacedWire::dueAt(const Link& link) const {
  for (const Flow* flow : link.queue) {
    if (!flow->isIssued()) {
      return std::max(flow->horizon, grid_.upTo(flow->timeOf(flow->firstUnissued())));
    }
    if (flow->inFlight == 0) return flow->end;
  }
  return kNever;
}

Seconds PacedWire::nextTimer() const {
  Seconds due = inner_->nextTimer();
  for (const Link& link : links_) due = std::min(due, dueAt(link));
  return due;
}

void PacedWire::close(Seconds bound) {
  inner_->close(bound);
  for (Link& link : links_) {
    while (!link.queue.empty()) deliver(*link.queue.front(), Outcome::Cancelled);
  }
  while (due_.drain()) {
  }
}

}  // namespace

std::unique_ptr<Wire> makePacedWire(std::unique_ptr<Wire> inner, PaceOptions options) {
  return std::make_unique<PacedWire>(std::move(inner), std::move(options));
}

}  // namespace byway
