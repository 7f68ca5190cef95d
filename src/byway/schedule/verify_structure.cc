// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "byway/schedule/verify_rules.h"

namespace byway {
namespace {

class Structure {
 public:
  Structure(const Schedule& s, Findings& findings) : s_(s), findings_(findings) {}

  void run() {
    shape();
    if (!findings_.empty()) return;  // nothing else can be judged against a wrong shape
    indices();
    if (!findings_.empty()) return;
    memberOf_.resize(static_cast<std::size_t>(s_.shape.ranks));
    for (int r = 0; r < s_.shape.ranks; ++r) {
      memberOf_[static_cast<std::size_t>(r)] = membershipOf(s_.shape, r);
      hasInput_.push_back(blockSet(inputBlocks(s_.shape, r)));
      hasOutput_.push_back(blockSet(outputBlocks(s_.shape, r)));
    }
    for (std::size_t t = 0; t < s_.transfers.size(); ++t) transfer(t);
    for (std::size_t i = 0; i < s_.steps.size(); ++i) step(i);
  }

 private:
  void shape() {
    std::set<int> seen;
    for (std::size_t g = 0; g < s_.shape.groups.size(); ++g) {
      const Group& group = s_.shape.groups[g];
      if (group.ranks.empty()) findings_.add(2, fmt::format("group {} has no members", g));
      for (const int r : group.ranks) {
        if (r < 0 || r >= s_.shape.ranks) {
          findings_.add(2, fmt::format("group {} names rank {} of {}", g, r, s_.shape.ranks));
        } else if (!seen.insert(r).second) {
          findings_.add(2, fmt::format("rank {} is in more than one place of the groups", r));
        }
      }
      if (group.root < 0 || group.root >= group.size()) {
        findings_.add(
            2, fmt::format("group {} has root {} of {} members", g, group.root, group.size()));
      }
    }
    if (!findings_.empty()) return;
    Shape standard = makeShape(s_.shape.collective, s_.shape.ranks, s_.shape.groups);
    if (standard.blocks.size() != s_.shape.blocks.size()) {
      findings_.add(2, fmt::format("{} blocks instead of {}", s_.shape.blocks.size(),
                                   standard.blocks.size()));
      return;
    }
    for (std::size_t b = 0; b < standard.blocks.size(); ++b) block(b, standard.blocks[b]);
  }

  void block(std::size_t index, const Block& standard) {
    const Block& mine = s_.shape.blocks[index];
    if (mine.group != standard.group || mine.source != standard.source ||
        mine.destination != standard.destination) {
      findings_.add(2, fmt::format("block {} is not the block of that number", index));
    }
    std::uint64_t sum = 0;
    for (const auto share : mine.shares) sum += std::min(share, kWhole + 1);
    if (sum != kWhole) {
      findings_.add(2, fmt::format("shares of block {} sum to {} of {}", index, sum, kWhole));
    }
    if (mine.directShares < 0 || mine.directShares > static_cast<int>(mine.shares.size())) {
      findings_.add(2, fmt::format("block {} has {} direct shares of {}", index, mine.directShares,
                                   mine.shares.size()));
    }
  }

  void indices() {
    if (s_.slots.size() != static_cast<std::size_t>(s_.shape.ranks)) {
      findings_.add(1,
                    fmt::format("slot counts for {} ranks of {}", s_.slots.size(), s_.shape.ranks));
    }
    std::uint64_t transfers = 0;
    std::uint64_t steps = 0;
    for (const Phase& p : s_.phases) {
      if (p.firstTransfer != transfers || p.firstStep != steps) {
        findings_.add(1, "phases do not list transfers and steps one after another");
      }
      transfers += p.transferCount;
      steps += p.stepCount;
    }
    if (transfers != s_.transfers.size() || steps != s_.steps.size()) {
      findings_.add(1, fmt::format("phases hold {} transfers of {} and {} steps of {}", transfers,
                                   s_.transfers.size(), steps, s_.steps.size()));
    }
    std::uint64_t inputs = 0;
    for (const Step& step : s_.steps) {
      if (step.firstInput != inputs) {
        findings_.add(1, "steps do not list their inputs one after another");
      }
      inputs += step.inputCount;
    }
    if (inputs != s_.inputs.size()) {
      findings_.add(1, fmt::format("steps have {} inputs of {}", inputs, s_.inputs.size()));
    }
  }

  std::vector<bool> blockSet(const std::vector<int>& blocks) const {
    std::vector<bool> set(s_.shape.blocks.size());
    for (const int b : blocks) set[static_cast<std::size_t>(b)] = true;
    return set;
  }

  // V1 and V5 for one ref; false when it cannot be looked at further.
  bool ref(const Ref& ref, const char* what, std::size_t index, bool written) {
    if (ref.rank < 0 || ref.rank >= s_.shape.ranks ||
        std::uint64_t{ref.first} + ref.count > s_.pieces.size() || ref.count == 0) {
      findings_.add(
          1, fmt::format("{} {}: rank {} of {}, pieces {}..{} of {}", what, index, ref.rank,
                         s_.shape.ranks, ref.first, ref.first + ref.count, s_.pieces.size()));
      return false;
    }
    const auto rank = static_cast<std::size_t>(ref.rank);
    if (ref.space != Space::Stage && memberOf_[rank].group < 0) {
      findings_.add(
          5, fmt::format("{} {}: helper {} has no {}", what, index, ref.rank, toString(ref.space)));
      return false;
    }
    if (ref.space == Space::Input && written) {
      findings_.add(5, fmt::format("{} {} writes the input of rank {}", what, index, ref.rank));
    }
    if (ref.space != Space::Stage && ref.width != Width::Element) {
      findings_.add(1, fmt::format("{} {}: user memory holds elements only", what, index));
    }
    bool right = true;
    for (const Piece& p : s_.piecesOf(ref)) right = piece(ref, p, what, index) && right;
    return right;
  }

  bool piece(const Ref& ref, const Piece& p, const char* what, std::size_t index) {
    const auto rank = static_cast<std::size_t>(ref.rank);
    if (p.block >= s_.shape.blocks.size() || p.share >= s_.shape.blocks[p.block].shares.size()) {
      findings_.add(1,
                    fmt::format("{} {}: no share {} of block {}", what, index, p.share, p.block));
      return false;
    }
    if (ref.space == Space::Stage) {
      if (p.slot < s_.slots[rank]) return true;
      findings_.add(1, fmt::format("{} {}: rank {} has no slot {}", what, index, ref.rank, p.slot));
      return false;
    }
    const auto& blocks = ref.space == Space::Input ? hasInput_[rank] : hasOutput_[rank];
    if (blocks[p.block]) return true;
    findings_.add(1, fmt::format("{} {}: block {} is not in the {} of rank {}", what, index,
                                 p.block, toString(ref.space), ref.rank));
    return false;
  }

  bool samePieces(const Ref& a, const Ref& b) const {
    const auto x = s_.piecesOf(a);
    const auto y = s_.piecesOf(b);
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Piece& p, const Piece& q) {
      return p.block == q.block && p.share == q.share;
    });
  }

  void transfer(std::size_t index) {
    const Transfer& t = s_.transfers[index];
    const bool from = ref(t.from, "transfer", index, false);
    const bool to = ref(t.to, "transfer", index, true);
    if (!from || !to) return;
    if (t.from.rank == t.to.rank) {
      findings_.add(3, fmt::format("transfer {} goes from rank {} to itself", index, t.to.rank));
    }
    if (t.from.width != t.to.width) {
      findings_.add(3, fmt::format("transfer {} changes its width", index));
    }
    if (!samePieces(t.from, t.to)) {
      findings_.add(3, fmt::format("transfer {} lists other pieces at each end", index));
    }
  }

  void step(std::size_t index) {
    const Step& step = s_.steps[index];
    bool right = ref(step.to, "step", index, true);
    for (const Ref& in : s_.inputsOf(step)) right = ref(in, "step", index, false) && right;
    if (!right) return;
    const std::size_t inputs = step.inputCount;
    if (inputs == 0 || (step.kind == StepKind::Copy && inputs != 1)) {
      findings_.add(10, fmt::format("step {} has {} inputs", index, inputs));
      return;
    }
    for (const Ref& in : s_.inputsOf(step)) stepInput(index, step, in);
    if (!piecesApart(step)) {
      findings_.add(10, fmt::format("step {} has two pieces in one place", index));
    }
  }

  // A step computes its pieces in any order: none may lie in the place of another's result.
  bool piecesApart(const Step& step) const {
    if (step.to.count == 1) return true;
    const bool stage = step.to.space == Space::Stage;
    const auto placeOf = [stage](const Piece& p) {
      return stage ? p.slot : static_cast<std::uint64_t>(p.block) << 32 | p.share;
    };
    std::vector<std::pair<std::uint64_t, std::size_t>> written;
    for (const Piece& p : s_.piecesOf(step.to)) written.emplace_back(placeOf(p), written.size());
    std::sort(written.begin(), written.end());
    for (std::size_t i = 1; i < written.size(); ++i) {
      if (written[i].first == written[i - 1].first) return false;
    }
    for (const Ref& in : s_.inputsOf(step)) {
      if ((in.space == Space::Stage) != stage) continue;
      std::size_t index = 0;
      for (const Piece& p : s_.piecesOf(in)) {
        const auto it =
            std::lower_bound(written.begin(), written.end(), std::pair(placeOf(p), std::size_t{0}));
        if (it != written.end() && it->first == placeOf(p) && it->second != index) return false;
        ++index;
      }
    }
    return true;
  }

  void stepInput(std::size_t index, const Step& step, const Ref& in) {
    if (in.rank != step.to.rank) {
      findings_.add(10,
                    fmt::format("step {} reads rank {} on rank {}", index, in.rank, step.to.rank));
    }
    if (!samePieces(in, step.to)) {
      findings_.add(10, fmt::format("step {} has an input of other pieces", index));
      return;
    }
    if (step.kind == StepKind::Copy && in.width != step.to.width) {
      findings_.add(10, fmt::format("step {} copies between widths", index));
    }
    const bool skips = step.skipWhenAliased;
    if (skips && (step.kind != StepKind::Copy || in.space != Space::Input ||
                  step.to.space != Space::Output)) {
      findings_.add(10, fmt::format("step {} may not be skipped in place", index));
    }
    if (in.space == Space::Stage && step.to.space == Space::Stage && in.width != step.to.width) {
      const auto a = s_.piecesOf(in);
      const auto b = s_.piecesOf(step.to);
      for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i].slot == b[i].slot) {
          findings_.add(10, fmt::format("step {} widens slot {} in place", index, a[i].slot));
        }
      }
    }
  }

  const Schedule& s_;
  Findings& findings_;
  std::vector<Membership> memberOf_;
  std::vector<std::vector<bool>> hasInput_, hasOutput_;
};

}  // namespace

void checkStructure(const Schedule& schedule, Findings& findings) {
  Structure(schedule, findings).run();
}

}  // namespace byway
