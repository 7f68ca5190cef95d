// SPDX-License-Identifier: BSD-3-Clause
#include "byway/schedule/dependences.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace byway {

Places::Places(const Schedule& schedule) {
  for (const Block& block : schedule.shape.blocks) {
    cellBase_.push_back(cells_);
    cells_ += static_cast<std::uint32_t>(block.shares.size());
  }
  for (std::size_t r = 0; r < schedule.slots.size(); ++r) {
    userBase_.push_back(count_);
    count_ += cells_;
    stageBase_.push_back(count_);
    count_ += schedule.slots[r];
  }
}

namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// Per place: the last writer, and a linked list of the readers since.
class GraphMaker {
 public:
  GraphMaker(const Schedule& schedule, bool withWriteAfterRead)
      : schedule_(schedule),
        places_(schedule),
        withWriteAfterRead_(withWriteAfterRead),
        writer_(places_.count(), kNone),
        readers_(places_.count(), kNone),
        writtenByCopy_(places_.count(), false) {}

  void read(const Ref& ref, OpId op) {
    for (const Piece& piece : schedule_.piecesOf(ref)) {
      const std::uint32_t place = places_.of(ref, piece);
      const bool ofInput = ref.space == Space::Input;
      if (!(ofInput && writtenByCopy_[place])) edge(writer_[place], op);
      nodes_.push_back({op, ofInput, readers_[place]});
      readers_[place] = static_cast<std::uint32_t>(nodes_.size() - 1);
    }
  }

  void write(const Ref& ref, OpId op) {
    for (const Piece& piece : schedule_.piecesOf(ref)) {
      const std::uint32_t place = places_.of(ref, piece);
      edge(writer_[place], op);
      if (withWriteAfterRead_) {
        for (auto n = readers_[place]; n != kNone; n = nodes_[n].next) edge(nodes_[n].op, op);
      }
      writer_[place] = op;
      writtenByCopy_[place] = false;
      readers_[place] = kNone;
    }
  }

  // A copy that is skipped in place: where it runs, Input and Output lie apart, so it meets only
  // what reads or writes Output.
  void copyWhenApart(const Step& step, OpId op) {
    for (const Piece& piece : schedule_.piecesOf(step.to)) {
      const std::uint32_t place = places_.of(step.to, piece);
      edge(writer_[place], op);
      std::uint32_t kept = kNone;
      for (auto n = readers_[place]; n != kNone;) {
        const std::uint32_t next = nodes_[n].next;
        if (nodes_[n].ofInput) {
          nodes_[n].next = kept;
          kept = n;
        } else if (withWriteAfterRead_) {
          edge(nodes_[n].op, op);
        }
        n = next;
      }
      readers_[place] = kept;
      writer_[place] = op;
      writtenByCopy_[place] = true;
    }
  }

  // Message i of a link waits, on both sides, for the one kLinkWindow before it.
  void boundLinks() {
    std::vector<std::uint32_t> order(schedule_.transfers.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto link = [&](std::uint32_t t) {
      return std::pair(schedule_.transfers[t].from.rank, schedule_.transfers[t].to.rank);
    };
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(link(a), a) < std::pair(link(b), b);
    });
    for (std::size_t i = kLinkWindow; i < order.size(); ++i) {
      const std::uint32_t before = order[i - kLinkWindow];
      if (link(before) != link(order[i])) continue;
      edge(sendOp(before), sendOp(order[i]));
      edge(recvOp(before), recvOp(order[i]));
    }
  }

  DependenceGraph finish() && {
    std::sort(edges_.begin(), edges_.end(), [](const Dependence& a, const Dependence& b) {
      return a.after != b.after ? a.after < b.after : a.before < b.before;
    });
    edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
    return {std::move(edges_)};
  }

 private:
  struct Node {
    OpId op;
    bool ofInput;
    std::uint32_t next;
  };
  void edge(std::uint32_t before, OpId after) {
    if (before != kNone && before != after) edges_.push_back({before, after});
  }

  const Schedule& schedule_;
  Places places_;
  bool withWriteAfterRead_;
  std::vector<std::uint32_t> writer_, readers_;
  std::vector<bool> writtenByCopy_;
  std::vector<Node> nodes_;
  std::vector<Dependence> edges_;
};

}  // namespace

DependenceGraph dependencesOf(const Schedule& schedule, bool withWriteAfterRead) {
  GraphMaker graph(schedule, withWriteAfterRead);
  for (const Phase& phase : schedule.phases) {
    const auto endTransfer = phase.firstTransfer + phase.transferCount;
    for (auto t = phase.firstTransfer; t < endTransfer; ++t) {
      graph.read(schedule.transfers[t].from, sendOp(t));
    }
    for (auto t = phase.firstTransfer; t < endTransfer; ++t) {
      graph.write(schedule.transfers[t].to, recvOp(t));
    }
    for (auto s = phase.firstStep; s < phase.firstStep + phase.stepCount; ++s) {
      const Step& step = schedule.steps[s];
      if (step.skipWhenAliased) {
        graph.copyWhenApart(step, stepOp(schedule, s));
        continue;
      }
      for (const Ref& in : schedule.inputsOf(step)) graph.read(in, stepOp(schedule, s));
      graph.write(step.to, stepOp(schedule, s));
    }
  }
  graph.boundLinks();
  return std::move(graph).finish();
}

}  // namespace byway
