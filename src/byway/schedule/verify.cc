// SPDX-License-Identifier: BSD-3-Clause
#include "byway/schedule/verify.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "byway/base/error.h"
#include "byway/schedule/verify_rules.h"

namespace byway {

std::vector<Violation> violations(const Schedule& schedule, const DependenceGraph& graph) {
  Findings findings;
  checkStructure(schedule, findings);
  if (findings.empty()) {
    checkMapped(schedule, findings);
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
    checkMapped(schedule, findings);
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
      publications_(publicationsOf(schedule_)),
      locals_(std::make_unique<Locals>()) {
  locals_->byRank.resize(static_cast<std::size_t>(schedule_.shape.ranks));
  const auto& slots = schedule_.slots;
  const auto& blocks = schedule_.shape.blocks;
  const auto& numbers = publications_.number;
  isMapped_ = std::any_of(numbers.begin(), numbers.end(),
                          [](std::uint32_t n) { return n != Publications::kNone; });
  hasMessages_ = std::any_of(numbers.begin(), numbers.end(),
                             [](std::uint32_t n) { return n == Publications::kNone; });
  publishesCopies_ = isMapped_ && needsCopies(schedule_, graph_, publications_);
  isTemplate_ = std::all_of(slots.begin(), slots.end(), [](std::uint32_t n) { return n == 0; }) &&
                std::all_of(blocks.begin(), blocks.end(),
                            [](const Block& block) { return block.shares.size() == 1; });
}

VerifiedSchedule::~VerifiedSchedule() = default;

namespace {

class Projection {
 public:
  Projection(const Schedule& s, const DependenceGraph& graph, const Publications& publications,
             int rank)
      : s_(s), graph_(graph), publications_(publications) {
    local_.rank = rank;
    local_.slots = s.slots[static_cast<std::size_t>(rank)];
    local_.publications = publications.ofRank[static_cast<std::size_t>(rank)];
    lastRecv_.assign(static_cast<std::size_t>(s.shape.ranks), kNoOp);
    index_.assign(2 * s.transfers.size() + s.steps.size(), kAbsent);
  }

  LocalProgram make() && {
    for (const Phase& phase : s_.phases) {
      for (auto t = phase.firstTransfer; t < phase.firstTransfer + phase.transferCount; ++t) {
        if (s_.transfers[t].from.rank == local_.rank) {
          add(LocalKind::Send, t, sendOp(t));
          map(t);
        }
        if (s_.transfers[t].to.rank == local_.rank) {
          add(LocalKind::Recv, t, recvOp(t));
          map(t);
          if (local_.ops.back().publication != kNoOp) continue;
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
      ends_.push_back(local_.ops.size());
    }
    link();
    for (std::uint32_t i = 0; i < local_.ops.size(); ++i) {
      local_.waits.push_back(local_.ops[i].waitsFor);
      if (local_.ops[i].waitsFor == 0) local_.first.push_back(i);
    }
    fold();
    hear();
    arrange();
    return std::move(local_);
  }

 private:
  static constexpr std::uint32_t kAbsent = ~0U;

  void add(LocalKind kind, std::uint32_t index, OpId op) {
    index_[op] = static_cast<std::uint32_t>(local_.ops.size());
    local_.ops.push_back({kind, index, 0, 0, 0, kNoOp, kNoOp, kNoOp, false});
  }

  void map(std::uint32_t transfer) {
    LocalOp& op = local_.ops.back();
    op.publication = publications_.number[transfer];
    const std::uint32_t step = publications_.foldedBy[transfer];
    if (op.kind != LocalKind::Recv || step == Publications::kNone) return;
    op.isFolded = true;
    local_.folded.push_back({step, transfer, static_cast<std::uint32_t>(local_.ops.size() - 1)});
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

  void hear() {
    std::vector<bool> heard(static_cast<std::size_t>(s_.shape.ranks), false);
    heard[static_cast<std::size_t>(local_.rank)] = true;
    for (const LocalOp& op : local_.ops) {
      if (op.kind != LocalKind::Recv || op.publication == kNoOp) continue;
      heard[static_cast<std::size_t>(s_.transfers[op.index].from.rank)] = true;
    }
    local_.hearsAll = std::all_of(heard.begin(), heard.end(), [](bool one) { return one; });
  }

  // Which receive brings each input of a sum, where it is read from where it lies.
  void fold() {
    if (local_.folded.empty()) return;
    local_.inputRecv.assign(s_.inputs.size(), kNoOp);
    for (const auto& [step, transfer, op] : local_.folded) {
      const Ref& to = s_.transfers[transfer].to;
      const auto inputs = s_.inputsOf(s_.steps[step]);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const bool same = inputs[i].space == Space::Stage &&
                          s_.piecesOf(inputs[i])[0].slot == s_.piecesOf(to)[0].slot;
        if (same) local_.inputRecv[s_.steps[step].firstInput + i] = op;
      }
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

  void arrange() {
    const auto isMessage = [](const LocalOp& op) {
      return (op.kind == LocalKind::Send || op.kind == LocalKind::Recv) && op.publication == kNoOp;
    };
    if (std::any_of(local_.ops.begin(), local_.ops.end(), isMessage)) return;
    using Place = std::tuple<std::size_t, int, std::uint32_t>;  // phase, haste, operation
    const auto placeOf = [&](std::uint32_t i) {
      const LocalOp& op = local_.ops[i];
      const auto phase = std::upper_bound(ends_.begin(), ends_.end(), std::size_t{i});
      const bool isAlone = op.waitsFor == 0 && op.nextCount == 0;
      const int haste = op.kind == LocalKind::Send ? 0 : op.kind == LocalKind::Recv ? 2 : 3;
      return Place(phase - ends_.begin(), haste == 3 && isAlone ? 1 : haste, i);
    };
    std::priority_queue<Place, std::vector<Place>, std::greater<>> ready;
    for (const std::uint32_t i : local_.first) ready.push(placeOf(i));
    std::vector<std::uint32_t> waits = local_.waits;
    while (!ready.empty()) {
      const std::uint32_t i = std::get<2>(ready.top());
      ready.pop();
      local_.order.push_back(i);
      const LocalOp& op = local_.ops[i];
      for (std::uint32_t n = 0; n < op.nextCount; ++n) {
        const std::uint32_t next = local_.next[op.firstNext + n];
        if (--waits[next] == 0) ready.push(placeOf(next));
      }
    }
  }

  const Schedule& s_;
  const DependenceGraph& graph_;
  const Publications& publications_;
  std::vector<std::size_t> ends_;  // of the phases, in local_.ops
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
    slot =
        std::make_unique<LocalProgram>(Projection(schedule_, graph_, publications_, rank).make());
  }
  return *slot;
}

}  // namespace byway
