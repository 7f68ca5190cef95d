// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "byway/schedule/verify_rules.h"

namespace byway {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// V6: one phase's transfers meet in no place.
void checkPhases(const Schedule& s, const Places& places, Findings& findings) {
  std::vector<std::uint32_t> readIn(places.count(), kNone);
  std::vector<std::uint32_t> writtenIn(places.count(), kNone);
  for (std::uint32_t p = 0; p < s.phases.size(); ++p) {
    const Phase& phase = s.phases[p];
    for (auto t = phase.firstTransfer; t < phase.firstTransfer + phase.transferCount; ++t) {
      for (const Piece& piece : s.piecesOf(s.transfers[t].from)) {
        readIn[places.of(s.transfers[t].from, piece)] = p;
      }
    }
    for (auto t = phase.firstTransfer; t < phase.firstTransfer + phase.transferCount; ++t) {
      const Ref& to = s.transfers[t].to;
      for (const Piece& piece : s.piecesOf(to)) {
        const auto place = places.of(to, piece);
        if (readIn[place] == p || writtenIn[place] == p) {
          findings.add(6, fmt::format("transfer {} writes what another transfer of phase {} {}: "
                                      "block {} share {} on rank {}",
                                      t, p, readIn[place] == p ? "reads" : "writes", piece.block,
                                      piece.share, to.rank));
        }
        writtenIn[place] = p;
      }
    }
  }
}

// V7: walks all accesses in schedule order and asks the graph for every pair that conflicts.
class Conflicts {
 public:
  Conflicts(const Schedule& s, const Places& places, const DependenceGraph& graph,
            Findings& findings)
      : s_(s), places_(places), graph_(graph), findings_(findings) {}

  void run() {
    number();
    edgesPointForward();
    if (!findings_.empty()) return;
    accesses();
  }

 private:
  void number() {
    const auto ops = 2 * s_.transfers.size() + s_.steps.size();
    when_.resize(ops);
    rank_.resize(ops);
    std::uint32_t now = 0;
    for (const Phase& phase : s_.phases) {
      ++now;
      for (auto t = phase.firstTransfer; t < phase.firstTransfer + phase.transferCount; ++t) {
        set(sendOp(t), now, s_.transfers[t].from.rank);
        set(recvOp(t), now, s_.transfers[t].to.rank);
      }
      for (auto i = phase.firstStep; i < phase.firstStep + phase.stepCount; ++i) {
        set(stepOp(s_, i), ++now, s_.steps[i].to.rank);
      }
    }
    firstEdge_.assign(ops + 1, 0);
    for (const Dependence& d : graph_.edges) {
      if (d.after < ops) ++firstEdge_[d.after + 1];
    }
    for (std::size_t i = 0; i < ops; ++i) firstEdge_[i + 1] += firstEdge_[i];
  }

  void set(OpId op, std::uint32_t when, int rank) {
    when_[op] = when;
    rank_[op] = rank;
  }

  // Forward edges within ranks cannot make a circle, so no order they allow can block.
  void edgesPointForward() {
    const Dependence* last = nullptr;
    for (const Dependence& d : graph_.edges) {
      if (d.before >= when_.size() || d.after >= when_.size() ||
          rank_[d.before] != rank_[d.after] || when_[d.before] >= when_[d.after]) {
        findings_.add(7, fmt::format("dependence {} -> {} does not point forward within a rank",
                                     d.before, d.after));
      } else if (last != nullptr &&
                 (last->after > d.after || (last->after == d.after && last->before >= d.before))) {
        findings_.add(7, "dependences are not sorted");
      }
      last = &d;
    }
  }

  void accesses() {
    writer_.assign(places_.count(), kNone);
    readers_.assign(places_.count(), {});
    copied_.assign(places_.count(), false);
    for (const Phase& phase : s_.phases) {
      const auto end = phase.firstTransfer + phase.transferCount;
      for (auto t = phase.firstTransfer; t < end; ++t) read(s_.transfers[t].from, sendOp(t));
      for (auto t = phase.firstTransfer; t < end; ++t) write(s_.transfers[t].to, recvOp(t));
      for (auto i = phase.firstStep; i < phase.firstStep + phase.stepCount; ++i) {
        if (s_.steps[i].skipWhenAliased) {
          copyWhenApart(s_.steps[i], stepOp(s_, i));
          continue;
        }
        for (const Ref& in : s_.inputsOf(s_.steps[i])) read(in, stepOp(s_, i));
        write(s_.steps[i].to, stepOp(s_, i));
      }
    }
  }

  void read(const Ref& ref, OpId op) {
    for (const Piece& piece : s_.piecesOf(ref)) {
      const auto place = places_.of(ref, piece);
      const bool apart = copied_[place] && ref.space == Space::Input;
      if (!apart) demand(writer_[place], op, ref, piece, "read after write");
      readers_[place].push_back({op, ref.space == Space::Input});
    }
  }

  void write(const Ref& ref, OpId op) {
    for (const Piece& piece : s_.piecesOf(ref)) {
      const auto place = places_.of(ref, piece);
      for (const Reader& reader : readers_[place]) {
        demand(reader.op, op, ref, piece, "write after read");
      }
      demand(writer_[place], op, ref, piece, "write after write");
      readers_[place].clear();
      writer_[place] = op;
      copied_[place] = false;
    }
  }

  // In place it does nothing; elsewhere Input is another place, which it only reads.
  void copyWhenApart(const Step& step, OpId op) {
    for (const Piece& piece : s_.piecesOf(step.to)) {
      const auto place = places_.of(step.to, piece);
      for (const Reader& reader : readers_[place]) {
        if (!reader.ofInput) demand(reader.op, op, step.to, piece, "write after read");
      }
      demand(writer_[place], op, step.to, piece, "write after write");
      std::erase_if(readers_[place], [](const Reader& reader) { return !reader.ofInput; });
      writer_[place] = op;
      copied_[place] = true;
    }
  }

  void demand(OpId before, OpId after, const Ref& ref, const Piece& piece, const char* kind) {
    if (before == kNone || before == after || ordered(before, after)) return;
    findings_.add(7, fmt::format("{} unordered: operations {} and {} on rank {}, block {} share {}",
                                 kind, before, after, ref.rank, piece.block, piece.share));
  }

  bool ordered(OpId before, OpId after) const {
    const auto first = graph_.edges.begin() + firstEdge_[after];
    const auto last = graph_.edges.begin() + firstEdge_[after + 1];
    if (std::binary_search(
            first, last, Dependence{before, after},
            [](const Dependence& a, const Dependence& b) { return a.before < b.before; })) {
      return true;
    }
    return std::any_of(first, last, [&](const Dependence& d) {
      return when_[d.before] > when_[before] && ordered(before, d.before);
    });
  }

  const Schedule& s_;
  const Places& places_;
  const DependenceGraph& graph_;
  Findings& findings_;
  std::vector<std::uint32_t> when_, firstEdge_, writer_;
  std::vector<int> rank_;
  struct Reader {
    OpId op;
    bool ofInput;
  };
  std::vector<std::vector<Reader>> readers_;
  std::vector<bool> copied_;  // last written by a copy that is skipped in place
};

}  // namespace

void checkOrder(const Schedule& schedule, const DependenceGraph& graph, Findings& findings) {
  const Places places(schedule);
  checkPhases(schedule, places, findings);
  if (!findings.empty()) return;  // no graph can order them
  Conflicts(schedule, places, graph, findings).run();
}

}  // namespace byway
