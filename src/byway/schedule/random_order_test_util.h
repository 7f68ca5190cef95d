// SPDX-License-Identifier: BSD-3-Clause
// Runs a schedule's operations on symbolic values in random orders that a graph allows, as ranks of
// any speed would. A posted receive spoils its place at once; its message is read from the sender
// at any later time.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "byway/schedule/verify.h"

namespace byway::testing_util {

class RandomOrder {
 public:
  // (rank, stage or user memory (Output: 1, Input out of place: 2), block or slot, share) -> value.
  using Memory = std::map<std::tuple<int, int, std::uint32_t, std::uint32_t>, std::string>;

  RandomOrder(const VerifiedSchedule& verified, bool inPlace)
      : RandomOrder(verified, inPlace, verified.graph()) {}
  RandomOrder(const VerifiedSchedule& verified, bool inPlace, const DependenceGraph& graph)
      : s_(verified.schedule()), inPlace_(inPlace), graph_(graph) {
    for (int r = 0; r < s_.shape.ranks; ++r) {
      for (const int b : inputBlocks(s_.shape, r)) {
        const auto shares = s_.shape.blocks[static_cast<std::size_t>(b)].shares.size();
        for (std::uint32_t share = 0; share < shares; ++share) {
          const Ref ref{Space::Input, Width::Element, r, 0, 1};
          at(ref, {static_cast<std::uint32_t>(b), share, 0}) =
              "x" + std::to_string(r) + "." + std::to_string(b) + "." + std::to_string(share);
        }
      }
    }
  }

  Memory phaseByPhase() && {
    for (const Phase& phase : s_.phases) {
      for (auto t = phase.firstTransfer; t < phase.firstTransfer + phase.transferCount; ++t) {
        move(s_.transfers[t]);
      }
      for (auto i = phase.firstStep; i < phase.firstStep + phase.stepCount; ++i) step(s_.steps[i]);
    }
    return outputs();
  }

  // Empty when operations are left and none can run.
  std::optional<Memory> run(std::mt19937& random) && {
    prepare();
    while (!ready_.empty()) {
      std::uniform_int_distribution<std::size_t> any(0, ready_.size() - 1);
      std::swap(ready_[any(random)], ready_.back());
      const OpId op = ready_.back();
      ready_.pop_back();
      start(op);
    }
    if (done_ != waits_.size()) return std::nullopt;
    return outputs();
  }

 private:
  void prepare() {
    const std::size_t transfers = s_.transfers.size();
    waits_.assign(2 * transfers + s_.steps.size(), 0);
    next_.resize(waits_.size());
    enabled_.assign(transfers, 0);
    for (const Dependence& d : graph_.edges) {
      ++waits_[d.after];
      next_[d.before].push_back(d.after);
    }
    for (OpId op = 0; op < waits_.size(); ++op) {
      if (waits_[op] == 0) ready_.push_back(op);
    }
  }

  // A send or receive comes up twice: it is posted, then the message moves when both ends are.
  void start(OpId op) {
    const auto transfers = static_cast<OpId>(s_.transfers.size());
    if (op >= 2 * transfers + s_.steps.size()) {
      const OpId t = op - 2 * transfers - static_cast<OpId>(s_.steps.size());
      move(s_.transfers[t]);
      finish(sendOp(t));
      finish(recvOp(t));
    } else if (op >= 2 * transfers) {
      step(s_.steps[op - 2 * transfers]);
      finish(op);
    } else {
      const OpId t = op / 2;
      const Ref& to = s_.transfers[t].to;
      if (op == recvOp(t)) {
        for (const Piece& p : s_.piecesOf(to)) at(to, p) = "spoiled";
      }
      // The moving message is one more operation, numbered behind all others.
      if (++enabled_[t] == 2) ready_.push_back(static_cast<OpId>(waits_.size()) + t);
    }
  }

  void finish(OpId op) {
    ++done_;
    for (const OpId next : next_[op]) {
      if (--waits_[next] == 0) ready_.push_back(next);
    }
  }

  std::string& at(const Ref& ref, const Piece& p) {
    if (ref.space == Space::Stage) return memory_[{ref.rank, 0, p.slot, 0}];
    const int buffer = ref.space == Space::Output || inPlace_ ? 1 : 2;
    return memory_[{ref.rank, buffer, p.block, p.share}];
  }

  void move(const Transfer& t) {
    const auto to = s_.piecesOf(t.to);
    const auto from = s_.piecesOf(t.from);
    for (std::size_t i = 0; i < to.size(); ++i) at(t.to, to[i]) = at(t.from, from[i]);
  }

  void step(const Step& step) {
    if (step.skipWhenAliased && inPlace_) return;
    const auto to = s_.piecesOf(step.to);
    for (std::size_t i = 0; i < to.size(); ++i) {
      std::string value;
      for (const Ref& in : s_.inputsOf(step)) {
        value += (value.empty() ? "" : "+") + at(in, s_.piecesOf(in)[i]);
      }
      at(step.to, to[i]) = step.kind == StepKind::Copy ? value : "(" + value + ")";
    }
  }

  Memory outputs() {
    Memory result;
    for (const auto& [place, value] : memory_) {
      if (std::get<1>(place) == 1) result[place] = value;
    }
    return result;
  }

  const Schedule& s_;
  bool inPlace_;
  const DependenceGraph& graph_;
  Memory memory_;
  std::vector<std::uint32_t> waits_, enabled_;
  std::vector<std::vector<OpId>> next_;
  std::vector<OpId> ready_;
  std::size_t done_ = 0;
};

}  // namespace byway::testing_util
