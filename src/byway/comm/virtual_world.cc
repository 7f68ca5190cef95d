// SPDX-License-Identifier: BSD-3-Clause
#include "byway/comm/virtual_world.h"

#include <algorithm>

#include "byway/comm/paced_links.h"
#include "byway/transport/inproc/inproc_wire.h"
#include "byway/transport/paced/paced_wire.h"

namespace byway {
namespace {

constexpr std::uint64_t kFirstChannelId = 1;

Segments phantom(const std::vector<int>& blocks, const std::vector<std::uint64_t>& counts,
                 std::size_t elementBytes) {
  std::uint64_t elements = 0;
  for (const int b : blocks) elements += counts[static_cast<std::size_t>(b)];
  const Buffer buffer{nullptr, elements * elementBytes, MemoryKind::Phantom, 0};
  return Segments({&buffer, 1});
}

OperationRequest requestFor(const VirtualCall& call, int rank) {
  OperationRequest request;
  request.schedule = call.schedule;
  request.blockCounts = call.blockCounts;
  request.dtype = call.dtype;
  request.op = call.op;
  request.factor = call.factor;
  request.timeout = kNever;
  if (call.inputs.empty()) {
    const Shape& shape = call.schedule->schedule().shape;
    request.stageKind = MemoryKind::Phantom;
    request.input = phantom(inputBlocks(shape, rank), call.blockCounts, sizeOf(call.dtype));
    request.output = phantom(outputBlocks(shape, rank), call.blockCounts, sizeOf(call.dtype));
  } else {
    request.input = call.inputs[static_cast<std::size_t>(rank)];
    request.output = call.outputs[static_cast<std::size_t>(rank)];
  }
  return request;
}

}  // namespace

VirtualWorld::VirtualWorld(const Topology& topology, std::uint64_t stageQuota, int communicators)
    : channels_(static_cast<std::size_t>(communicators)) {
  auto fabric = std::make_shared<InprocFabric>();
  const auto shared = std::make_shared<const Topology>(topology);
  const int n = topology.ranks;
  std::vector<std::shared_ptr<PacedLinks>> links;
  std::vector<Address> addresses;
  for (int r = 0; r < n; ++r) {
    links.push_back(std::make_shared<PacedLinks>(shared));
    PaceOptions pace = PacedLinks::options(links.back());
    pace.ports = {};
    pace.tick = 0;
    auto wire = makePacedWire(makeInprocWire(fabric, clock_), std::move(pace));
    EngineOptions options;
    options.progressThread = false;
    engines_.push_back(Engine::make(std::make_unique<Transport>(std::move(wire)), options));
    addresses.push_back(engines_.back()->address());
  }
  for (int r = 0; r < n; ++r) {
    ChannelOptions options;
    options.rank = r;
    options.stageQuota = stageQuota;
    for (int from = 0; from < n; ++from) {
      const PeerId peer =
          engines_[static_cast<std::size_t>(r)]->connect(addresses[static_cast<std::size_t>(from)]);
      options.peers.push_back(peer);
      links[static_cast<std::size_t>(r)]->place(r, peer, from);
    }
    for (int c = 0; c < communicators; ++c) {
      options.id = kFirstChannelId + static_cast<std::uint64_t>(c);
      channels_[static_cast<std::size_t>(c)].push_back(
          &engines_[static_cast<std::size_t>(r)]->open(options));
    }
  }
}

VirtualWorld::~VirtualWorld() = default;

Seconds VirtualWorld::run(const VirtualCall& call) { return runAll({call})[0]; }

std::vector<Seconds> VirtualWorld::runAll(const std::vector<VirtualCall>& calls) {
  const Seconds start = clock_.now();
  const std::size_t n = engines_.size();
  std::vector<std::vector<std::shared_ptr<Operation>>> operations(calls.size());
  for (std::size_t c = 0; c < calls.size(); ++c) {
    for (std::size_t r = 0; r < n; ++r) {
      operations[c].push_back(
          engines_[r]->submit(*channels_.at(static_cast<std::size_t>(calls[c].communicator))[r],
                              requestFor(calls[c], static_cast<int>(r))));
    }
  }
  std::vector<Seconds> ended(calls.size(), -1);
  for (;;) {
    bool moved = false;
    for (const auto& engine : engines_) moved = engine->step() || moved;
    bool open = false;
    for (std::size_t c = 0; c < calls.size(); ++c) {
      if (ended[c] >= 0) continue;
      const auto& mine = operations[c];
      if (std::all_of(mine.begin(), mine.end(), [](const auto& o) { return o->done(); })) {
        ended[c] = clock_.now() - start;
        for (const auto& o : mine) {
          if (o->error()) std::rethrow_exception(o->error());
        }
      } else {
        open = true;
      }
    }
    if (!open) return ended;
    if (moved) continue;
    Seconds next = kNever;
    for (const auto& engine : engines_) next = std::min(next, engine->nextTimer());
    if (next == kNever) {
      throw Error(ErrorCode::Internal,
                  "nothing moves any more: " + operations[0][0]->outstanding());
    }
    clock_.advanceTo(next);
  }
}

std::uint64_t VirtualWorld::stagePeak(int rank) const {
  return channels_[0][static_cast<std::size_t>(rank)]->stage().peak();
}

}  // namespace byway
