// SPDX-License-Identifier: BSD-3-Clause
// A probe's links on a virtual clock, as a topology has them, ports too: exact times.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "byway/comm/paced_links.h"
#include "byway/executor/engine.h"
#include "byway/tools/probe/links.h"
#include "byway/transport/inproc/inproc_wire.h"

namespace byway::tools {

class VirtualLinks final : public ProbeLinks {
 public:
  explicit VirtualLinks(const Topology& topology) : topology_(topology) {
    const auto shared = std::make_shared<const Topology>(topology);
    auto fabric = std::make_shared<InprocFabric>();
    std::vector<std::shared_ptr<PacedLinks>> links;
    for (int r = 0; r < ranks(); ++r) {
      links.push_back(std::make_shared<PacedLinks>(shared));
      PaceOptions pace = PacedLinks::options(links.back());
      pace.tick = 0;
      auto wire = makePacedWire(makeInprocWire(fabric, clock_), std::move(pace));
      EngineOptions options;
      options.progressThread = false;
      engines_.push_back(Engine::make(std::make_unique<Transport>(std::move(wire)), options));
    }
    peers_.resize(engines_.size());
    for (std::size_t r = 0; r < engines_.size(); ++r) {
      for (std::size_t from = 0; from < engines_.size(); ++from) {
        peers_[r].push_back(engines_[r]->connect(engines_[from]->address()));
        links[r]->place(static_cast<int>(r), peers_[r].back(), static_cast<int>(from));
      }
    }
    for (int from = 0; from < ranks(); ++from) {
      for (int to = 0; to < ranks(); ++to) {
        if (from != to) channels_.push_back({&open(from, to, from), &open(from, to, to)});
        if (from == to) channels_.emplace_back();
      }
    }
  }

  int ranks() const override { return topology_.ranks; }
  Seconds acknowledgement() override { return 0; }
  double starved() override { return 0; }
  double reduceRate() override { return topology_.reduce; }

  std::vector<Seconds> run(const std::vector<Flow>& flows) override {
    std::vector<std::shared_ptr<Operation>> receives;
    for (const Flow& flow : flows) receives.push_back(submit(flow, false));
    const Seconds start = clock_.now();
    for (const Flow& flow : flows) submit(flow, true);
    std::vector<Seconds> times(flows.size(), -1);
    while (!drive(receives, start, times)) {
    }
    whole_ = *std::max_element(times.begin(), times.end());
    return times;
  }
  Seconds whole() const override { return whole_; }
  Seconds now() const { return clock_.now(); }

 private:
  // A communicator for each directed link, since a missing one breaks its own.
  Channel& open(int from, int to, int rank) {
    ChannelOptions options;
    options.id = static_cast<std::uint64_t>(1 + from * ranks() + to);
    options.rank = rank;
    options.peers = peers_[static_cast<std::size_t>(rank)];
    return engines_[static_cast<std::size_t>(rank)]->open(options);
  }
  std::shared_ptr<Operation> submit(const Flow& flow, bool sends) {
    const auto& link = channels_[static_cast<std::size_t>(flow.from * ranks() + flow.to)];
    PointToPointRequest request;
    request.timeout = kNever;
    for (int m = 0; m < flow.messages; ++m) {
      const Buffer buffer{nullptr, flow.bytes, MemoryKind::Phantom, 0};
      request.transfers.push_back({sends, sends ? flow.to : flow.from,
                                   static_cast<std::uint32_t>(m), DType::UInt8,
                                   Segments({&buffer, 1})});
    }
    return engines_[static_cast<std::size_t>(sends ? flow.from : flow.to)]->submit(
        sends ? *link.sender : *link.receiver, std::move(request));
  }
  bool drive(const std::vector<std::shared_ptr<Operation>>& receives, Seconds start,
             std::vector<Seconds>& times) {
    bool moved = false, open = false;
    for (const auto& engine : engines_) moved = engine->step() || moved;
    for (std::size_t f = 0; f < receives.size(); ++f) {
      if (times[f] >= 0) continue;
      open = open || !receives[f]->done();
      if (receives[f]->done()) times[f] = receives[f]->error() ? kNever : clock_.now() - start;
    }
    if (moved || !open) return !open;
    Seconds next = kNever;
    for (const auto& engine : engines_) next = std::min(next, engine->nextTimer());
    if (next == kNever) throw std::runtime_error("nothing moves any more");
    clock_.advanceTo(next);
    return false;
  }

  Topology topology_;
  VirtualClock clock_;
  Seconds whole_ = 0;
  std::vector<std::shared_ptr<Engine>> engines_;
  std::vector<std::vector<PeerId>> peers_;
  struct Link {
    Channel *sender = nullptr, *receiver = nullptr;
  };
  std::vector<Link> channels_;  // [from * ranks + to]
};

}  // namespace byway::tools
