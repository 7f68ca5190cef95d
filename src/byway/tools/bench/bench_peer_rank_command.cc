// SPDX-License-Identifier: BSD-3-Clause
// byway bench-peer-rank: one of Byway's own processes in a comparison with other libraries. Hidden:
// `byway bench flat --against` starts it.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/comm/communicator.h"
#include "byway/tools/bench/peers/peer_loop.h"
#include "byway/tools/command.h"
#include "byway/tools/values.h"

namespace byway::tools {
namespace {

using byway_peers::Cell;

class Own : public byway_peers::Library {
 public:
  Own() : world_(Communicator::world()) {}

  int rank() const override { return world_->rank(); }
  int size() const override { return world_->size(); }

  void prepare(const Cell& cell) override {
    collective_ = collectiveNamed(cell.collective);
    dtype_ = dtypeNamed(cell.dtype);
  }

  void call(const Cell& cell, void* in, void* out) override {
    const std::uint64_t bytes = cell.count * cell.elementBytes;
    const std::uint64_t all = bytes * static_cast<std::uint64_t>(cell.size);
    start(cell, in, out, bytes, all).wait();
  }

 private:
  static Region whole(void* data, std::uint64_t bytes) {
    return data == nullptr ? Region() : Region(data, bytes);
  }

  Work start(const Cell& cell, void* in, void* out, std::uint64_t bytes, std::uint64_t all) {
    constexpr int kRoot = 0;
    const Region onRoot = rank() == kRoot ? whole(out, bytes) : Region();
    switch (collective_) {
      case Collective::AllReduce:
        return world_->allReduce(whole(in, bytes), whole(out, bytes), cell.count, dtype_);
      case Collective::Broadcast:
        return world_->broadcast(rank() == kRoot ? whole(in, bytes) : Region(), whole(out, bytes),
                                 cell.count, dtype_, kRoot);
      case Collective::Reduce:
        return world_->reduce(whole(in, bytes), onRoot, cell.count, dtype_, kRoot);
      case Collective::AllGather:
        return world_->allGather(whole(in, bytes), whole(out, all), cell.count, dtype_);
      case Collective::ReduceScatter:
        return world_->reduceScatter(whole(in, all), whole(out, bytes), cell.count, dtype_);
      case Collective::AllToAll:
        return world_->allToAll(whole(in, all), whole(out, all), cell.count, dtype_);
      case Collective::Scatter:
        return world_->scatter(whole(in, all), whole(out, bytes), cell.count, dtype_, kRoot);
      case Collective::Gather:
        return world_->gather(whole(in, bytes), whole(out, all), cell.count, dtype_, kRoot);
    }
    throw Error(ErrorCode::Internal, "no such collective");
  }

  std::unique_ptr<Communicator> world_;
  Collective collective_ = Collective::AllReduce;
  DType dtype_ = DType::Float32;
};

int runRank() {
  Own library;
  byway_peers::serve(library);
  return kOk;
}

}  // namespace

void addBenchPeerRankCommand(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("bench-peer-rank", "");
  sub->group("");  // not in the help
  sub->callback([&action] { action = runRank; });
}

}  // namespace byway::tools
