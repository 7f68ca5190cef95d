// SPDX-License-Identifier: BSD-3-Clause
#include "byway/schedule/mapped.h"

#include <algorithm>

#include <fmt/format.h>

#include "byway/schedule/verify_rules.h"

namespace byway {
namespace {

bool samePlace(const Schedule& s, const Ref& a, const Ref& b) {
  const auto x = s.piecesOf(a);
  const auto y = s.piecesOf(b);
  return a.space == b.space && a.width == b.width && a.rank == b.rank &&
         std::equal(x.begin(), x.end(), y.begin(), y.end());
}

// The steps of the phase that sum what `to` receives; the last of them is written to `step`.
int foldersOf(const Schedule& s, const Phase& phase, const Ref& to, std::uint32_t& step) {
  int found = 0;
  for (auto i = phase.firstStep; i < phase.firstStep + phase.stepCount; ++i) {
    if (s.steps[i].kind != StepKind::Reduce || s.steps[i].to.rank != to.rank) continue;
    for (const Ref& in : s.inputsOf(s.steps[i])) {
      if (!samePlace(s, in, to)) continue;
      ++found;
      step = i;
    }
  }
  return found;
}

}  // namespace

bool hasMappedPhases(const Schedule& s) {
  return std::any_of(s.phases.begin(), s.phases.end(),
                     [](const Phase& p) { return p.protocol == Protocol::Mapped; });
}

Publications publicationsOf(const Schedule& s) {
  Publications p;
  p.number.assign(s.transfers.size(), Publications::kNone);
  p.readers.assign(s.transfers.size(), 0);
  p.foldedBy.assign(s.transfers.size(), Publications::kNone);
  p.ofRank.assign(static_cast<std::size_t>(s.shape.ranks), 0);
  for (const Phase& phase : s.phases) {
    if (phase.protocol != Protocol::Mapped) continue;
    const auto end = phase.firstTransfer + phase.transferCount;
    for (auto t = phase.firstTransfer; t < end; ++t) {
      const Ref& from = s.transfers[t].from;
      for (auto earlier = phase.firstTransfer; earlier < t; ++earlier) {
        if (!samePlace(s, s.transfers[earlier].from, from)) continue;
        p.number[t] = p.number[earlier];
        break;
      }
      if (p.number[t] == Publications::kNone) {
        p.number[t] = p.ofRank[static_cast<std::size_t>(from.rank)]++;
      }
      if (s.transfers[t].to.space == Space::Stage) {
        foldersOf(s, phase, s.transfers[t].to, p.foldedBy[t]);
      }
    }
    for (auto t = phase.firstTransfer; t < end; ++t) {
      for (auto other = phase.firstTransfer; other < end; ++other) {
        if (s.transfers[other].from.rank == s.transfers[t].from.rank &&
            p.number[other] == p.number[t]) {
          ++p.readers[t];
        }
      }
    }
  }
  return p;
}

// Two nodes an operation, its start and its end; a send ends when its reader has.
bool needsCopies(const Schedule& s, const DependenceGraph& graph, const Publications& p) {
  const auto transfers = static_cast<std::uint32_t>(s.transfers.size());
  const auto operations = 2 * transfers + static_cast<std::uint32_t>(s.steps.size());
  std::vector<std::vector<std::uint32_t>> next(2 * std::size_t{operations});
  std::vector<std::uint32_t> waits(next.size(), 0);
  const auto edge = [&](std::uint32_t before, std::uint32_t after) {
    next[before].push_back(after);
    ++waits[after];
  };
  const auto start = [](OpId op) { return 2 * op; };
  const auto end = [](OpId op) { return 2 * op + 1; };
  for (OpId op = 0; op < operations; ++op) edge(start(op), end(op));
  for (const Dependence& d : graph.edges) edge(end(d.before), start(d.after));
  for (std::uint32_t t = 0; t < transfers; ++t) {
    edge(start(sendOp(t)), end(recvOp(t)));
    const std::uint32_t step = p.foldedBy[t];
    edge(step == Publications::kNone ? end(recvOp(t)) : end(stepOp(s, step)), end(sendOp(t)));
  }
  std::vector<std::uint32_t> ready;
  for (std::uint32_t n = 0; n < waits.size(); ++n) {
    if (waits[n] == 0) ready.push_back(n);
  }
  std::size_t done = 0;
  for (; !ready.empty(); ++done) {
    const std::uint32_t n = ready.back();
    ready.pop_back();
    for (const std::uint32_t m : next[n]) {
      if (--waits[m] == 0) ready.push_back(m);
    }
  }
  return done < waits.size();
}

namespace {

// How often each stage slot of each rank is read and written.
struct SlotUses {
  std::vector<std::vector<std::uint32_t>> reads, writes;
  explicit SlotUses(const Schedule& s) {
    for (const std::uint32_t slots : s.slots) {
      reads.emplace_back(slots, 0U);
      writes.emplace_back(slots, 0U);
    }
    for (const Transfer& t : s.transfers) {
      add(s, t.from, reads);
      add(s, t.to, writes);
    }
    for (const Step& step : s.steps) add(s, step.to, writes);
    for (const Ref& in : s.inputs) add(s, in, reads);
  }
  static void add(const Schedule& s, const Ref& ref, std::vector<std::vector<std::uint32_t>>& to) {
    if (ref.space != Space::Stage) return;
    for (const Piece& piece : s.piecesOf(ref)) ++to[static_cast<std::size_t>(ref.rank)][piece.slot];
  }
};

}  // namespace

void checkMapped(const Schedule& s, Findings& findings) {
  if (!hasMappedPhases(s)) return;
  const SlotUses all(s);
  SlotUses mapped(s);
  for (auto* uses : {&mapped.reads, &mapped.writes}) {
    for (auto& ofRank : *uses) std::fill(ofRank.begin(), ofRank.end(), 0U);
  }
  for (std::size_t p = 0; p < s.phases.size(); ++p) {
    const Phase& phase = s.phases[p];
    if (phase.protocol != Protocol::Mapped) continue;
    for (auto t = phase.firstTransfer; t < phase.firstTransfer + phase.transferCount; ++t) {
      const Ref& to = s.transfers[t].to;
      if (to.space != Space::Stage) continue;
      std::uint32_t step = 0;
      if (const int found = foldersOf(s, phase, to, step); found != 1) {
        findings.add(11, fmt::format("transfer {} of mapped phase {} goes into stage slots that {} "
                                     "sums of the phase read as it was sent",
                                     t, p, found));
      }
      SlotUses::add(s, to, mapped.reads);
      SlotUses::add(s, to, mapped.writes);
    }
  }
  for (std::size_t r = 0; r < all.reads.size(); ++r) {
    for (std::size_t slot = 0; slot < all.reads[r].size(); ++slot) {
      const std::uint32_t wanted = mapped.writes[r][slot];
      if (wanted == 0 || (all.reads[r][slot] == wanted && all.writes[r][slot] == wanted)) continue;
      findings.add(11, fmt::format("slot {} of rank {} stands for what mapped transfers bring, and "
                                   "is used otherwise, too",
                                   slot, r));
    }
  }
  const Publications publications = publicationsOf(s);
  for (std::size_t r = 0; r < publications.ofRank.size(); ++r) {
    if (publications.ofRank[r] <= kMostPublications) continue;
    findings.add(11, fmt::format("rank {} publishes {} times; at most {} are possible", r,
                                 publications.ofRank[r], kMostPublications));
  }
}

}  // namespace byway
