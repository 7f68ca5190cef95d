// SPDX-License-Identifier: BSD-3-Clause
// For tests: several transports that one thread drives on a virtual clock, and data that shows
// which rank, call and index a byte came from.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "byway/transport/inproc/inproc_wire.h"
#include "byway/transport/paced/paced_wire.h"
#include "byway/transport/transport.h"

namespace byway::testing {

inline std::byte patternByte(std::uint64_t rank, std::uint64_t call, std::uint64_t index) {
  std::uint64_t x = (rank + 1) * 0x9e3779b97f4a7c15ULL ^ (call + 1) * 0xbf58476d1ce4e5b9ULL ^
                    (index + 1) * 0x94d049bb133111ebULL;
  x ^= x >> 29;
  return static_cast<std::byte>((x * 0xff51afd7ed558ccdULL) >> 56);
}

inline std::vector<std::byte> pattern(std::uint64_t rank, std::uint64_t call, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = patternByte(rank, call, i);
  return data;
}

// What a completion said, how often and when.
struct Probe {
  int calls = 0;
  Outcome outcome = Outcome::Ok;
  Seconds at = -1;
  const Clock* clock = nullptr;

  Completion completion() {
    return {[](void* self, std::uint32_t, Outcome what) {
              auto& probe = *static_cast<Probe*>(self);
              ++probe.calls;
              probe.outcome = what;
              if (probe.clock != nullptr) probe.at = probe.clock->now();
            },
            this, 0};
  }
  bool is(Outcome expected) const { return calls == 1 && outcome == expected; }
};

struct Sink final : ArrivalSink {
  std::vector<MatchKey> data;
  std::vector<std::vector<std::byte>> controls;
  bool dataArrived(const MatchKey& key, const Stamp&) override {
    data.push_back(key);
    return wanted;
  }
  bool wanted = true;  // what it answers
  void controlArrived(PeerId, std::span<const std::byte> payload) override {
    controls.emplace_back(payload.begin(), payload.end());
  }
};

class World {
 public:
  explicit World(int ranks, TransportOptions options = {}) : World(ranks, {}, 0, options) {}
  // With a rate for each directed link (from, to).
  World(int ranks, const std::function<LinkRate(int from, int to)>& rate, Seconds tick,
        TransportOptions options = {}, PortLimits ports = {}) {
    for (int r = 0; r < ranks; ++r) {
      auto wire = makeInprocWire(fabric, clock);
      if (rate) {
        PaceOptions pace;
        pace.rateFrom = [rate, r](PeerId peer) { return rate(peer, r); };
        if (ports.egress > 0 || ports.ingress > 0) pace.ports = [ports] { return ports; };
        pace.tick = tick;
        pace.phase = static_cast<double>(r) / ranks;
        wire = makePacedWire(std::move(wire), pace);
      }
      transports.push_back(std::make_unique<Transport>(std::move(wire), options));
      sinks.emplace_back();
      transports.back()->setSink(&sinks.back());
    }
    for (auto& t : transports) peers.push_back(transports[0]->connect(t->address()));
  }
  ~World() {
    for (auto& t : transports) t->close(1);
  }

  Transport& operator[](int rank) { return *transports[static_cast<std::size_t>(rank)]; }
  PeerId peer(int rank) const { return peers[static_cast<std::size_t>(rank)]; }

  // Everything that can happen without time going by.
  void settle() {
    for (bool active = true; active;) {
      active = false;
      for (auto& t : transports) active |= t->progress();
    }
  }
  // Everything up to `until`, from event to event.
  void runUntil(Seconds until) {
    for (settle();; settle()) {
      Seconds next = kNever;
      for (auto& t : transports) next = std::min(next, t->nextTimer());
      if (next > until || next == kNever) break;
      ASSERT_GT(next, clock.now());
      clock.advanceTo(next);
    }
    if (until != kNever) clock.advanceTo(until);
    settle();
  }
  void run() { runUntil(kNever); }

  void send(int from, int to, const MatchKey& key, std::span<const ConstBuffer> pieces, Probe& p) {
    p.clock = &clock;
    (*this)[from].send(peer(to), key, Stamp{key.sequence, key.transfer}, pieces, p.completion());
  }
  void send(int from, int to, const MatchKey& key, const std::vector<std::byte>& data, Probe& p) {
    const ConstBuffer piece(data.data(), data.size());
    send(from, to, key, {&piece, 1}, p);
  }
  void recv(int at, int from, const MatchKey& key, std::span<const Buffer> pieces, Probe& p) {
    p.clock = &clock;
    (*this)[at].recv(peer(from), key, pieces, p.completion());
  }
  void recv(int at, int from, const MatchKey& key, std::vector<std::byte>& data, Probe& p) {
    const Buffer piece{data.data(), data.size()};
    recv(at, from, key, {&piece, 1}, p);
  }

  VirtualClock clock;
  std::shared_ptr<InprocFabric> fabric = std::make_shared<InprocFabric>();
  std::deque<Sink> sinks;
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<PeerId> peers;
};

// Cuts `data` into pieces of the given sizes, used in turn.
template <class Piece, class Bytes>
std::vector<Piece> cut(Bytes& data, std::initializer_list<std::size_t> sizes) {
  std::vector<Piece> pieces;
  std::size_t at = 0;
  for (std::size_t i = 0; at < data.size(); ++i) {
    const std::size_t count = std::min(*(sizes.begin() + i % sizes.size()), data.size() - at);
    Piece piece;
    piece.address = data.data() + at;
    piece.bytes = count;
    pieces.push_back(piece);
    at += count;
  }
  return pieces;
}

}  // namespace byway::testing
