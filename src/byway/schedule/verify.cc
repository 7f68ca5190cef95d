// SPDX-License-Identifier: BSD-3-Clause
#include "byway/schedule/verify.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "byway/base/error.h"
#include "byway/schedule/verify_rules.h"

namespace byway {

std::vector<Violation> violations(const Schedule& schedule, const DependenceGraph& graph) {
  Findings findings;
  checkStructure(schedule, findings);
  if (findings.empty()) {
    checkOrder(schedule, graph, findings);
    checkValues(schedule, findings);
  }
  return std::move(findings).take();
}

std::vector<Violation> violations(const Schedule& schedule) {
  Findings findings;
  checkStructure(schedule, findings);
  if (!findings.empty()) return std::move(findings).take();
  return violations(schedule, dependencesOf(schedule));
}

std::shared_ptr<const VerifiedSchedule> verify(Schedule schedule) {
  Findings findings;
  checkStructure(schedule, findings);
  DependenceGraph graph;
  if (findings.empty()) {
    graph = dependencesOf(schedule);
    checkOrder(schedule, graph, findings);
    checkValues(schedule, findings);
  }
  const auto found = std::move(findings).take();
  if (!found.empty()) {
    std::string what = "schedule \"" + schedule.name + "\" is wrong:";
    for (const Violation& v : found) what += "\n  V" + std::to_string(v.rule) + ": " + v.what;
    throw Error(ErrorCode::InvalidArgument, what);
  }
  return std::shared_ptr<const VerifiedSchedule>(
      new VerifiedSchedule(std::move(schedule), std::move(graph)));
}

struct VerifiedSchedule::Locals {
  std::mutex mutex;
  std::vector<std::unique_ptr<LocalProgram>> byRank;
};

VerifiedSchedule::VerifiedSchedule(Schedule schedule, DependenceGraph graph)
    : schedule_(std::move(schedule)),
      graph_(std::move(graph)),
      hash_(hashOf(schedule_)),
      locals_(std::make_unique<Locals>()) {
  locals_->byRank.resize(static_cast<std::size_t>(schedule_.shape.ranks));
  const auto& slots = schedule_.slots;
  const auto& blocks = schedule_.shape.blocks;
  isTemplate_ = std::all_of(slots.begin(), slots.end(), [](std::uint32_t n) { return n == 0; }) &&
                std::all_of(blocks.begin(), blocks.end(),
                            [](const Block& block) { return block.shares.size() == 1; });
}

VerifiedSchedule::~VerifiedSchedule() = default;

namespace {

class Projection {
 public:
  Projection(const Schedule& s, const DependenceGraph& graph, int rank) : s_(s), graph_(graph) {
    local_.rank = rank;
    local_.slots = s.slots[static_cast<std::size_t>(rank)];
    lastRecv_.assign(static_cast<std::size_t>(s.shape.ranks), kNoOp);
    index_.assign(2 * s.transfers.size() + s.steps.size(), kAbsent);
  }

  LocalProgram make() && {
    for (const Phase& phase : s_.phases) {
      for (auto t = phase.firstTransfer; t < phase.firstTransfer + phase.transferCount; ++t) {
        if (s_.transfers[t].from.rank == local_.rank) add(LocalKind::Send, t, sendOp(t));
        if (s_.transfers[t].to.rank == local_.rank) {
          add(LocalKind::Recv, t, recvOp(t));
          chain(s_.transfers[t].from.rank);
          use(s_.transfers[t].to);
        }
      }
      for (auto i = phase.firstStep; i < phase.firstStep + phase.stepCount; ++i) {
        const Step& step = s_.steps[i];
        if (step.to.rank != local_.rank) continue;
        add(step.kind == StepKind::Copy ? LocalKind::Copy : LocalKind::Reduce, i, stepOp(s_, i));
        use(step.to);
      }
    }
    link();
    return std::move(local_);
  }

 private:
  static constexpr std::uint32_t kAbsent = ~0U;

  void add(LocalKind kind, std::uint32_t index, OpId op) {
    index_[op] = static_cast<std::uint32_t>(local_.ops.size());
    local_.ops.push_back({kind, index, 0, 0, 0, kNoOp, kNoOp});
  }

  void chain(int from) {
    const auto mine = static_cast<std::uint32_t>(local_.ops.size() - 1);
    std::uint32_t& last = lastRecv_[static_cast<std::size_t>(from)];
    local_.ops[mine].previousRecv = last;
    if (last != kNoOp) local_.ops[last].nextRecv = mine;
    last = mine;
  }

  // Reads need no entry: what is read was written into the slot at the same size.
  void use(const Ref& ref) {
    if (ref.space != Space::Stage) return;
    for (const Piece& p : s_.piecesOf(ref)) {
      local_.slotUses.push_back({p.slot, p.block, p.share, ref.width});
    }
  }

  void link() {
    for (const Dependence& d : graph_.edges) {
      if (index_[d.after] == kAbsent) continue;
      ++local_.ops[index_[d.after]].waitsFor;
      ++local_.ops[index_[d.before]].nextCount;
    }
    std::uint32_t total = 0;
    for (LocalOp& op : local_.ops) {
      op.firstNext = total;
      total += op.nextCount;
      op.nextCount = 0;
    }
    local_.next.resize(total);
    for (const Dependence& d : graph_.edges) {
      if (index_[d.after] == kAbsent) continue;
      LocalOp& before = local_.ops[index_[d.before]];
      local_.next[before.firstNext + before.nextCount++] = index_[d.after];
    }
  }

  const Schedule& s_;
  const DependenceGraph& graph_;
  std::vector<std::uint32_t> index_;
  std::vector<std::uint32_t> lastRecv_;  // per rank
  LocalProgram local_;
};

}  // namespace

const LocalProgram& VerifiedSchedule::local(int rank) const {
  if (rank < 0 || rank >= schedule_.shape.ranks) {
    throw Error(ErrorCode::InvalidArgument, "rank " + std::to_string(rank) + " is not one of " +
                                                std::to_string(schedule_.shape.ranks));
  }
  const std::scoped_lock lock(locals_->mutex);
  auto& slot = locals_->byRank[static_cast<std::size_t>(rank)];
  if (!slot) {
    slot = std::make_unique<LocalProgram>(Projection(schedule_, graph_, rank).make());
  }
  return *slot;
}

}  // namespace byway
