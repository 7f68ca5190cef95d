// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "byway/schedule/fold.h"
#include "byway/schedule/verify_rules.h"

namespace byway {
namespace {

// What a place holds: a value of one share.
struct Held {
  std::uint32_t cell = 0;
  ValueId value = 0;
  bool operator==(const Held&) const = default;
};

// The schedule runs twice in lockstep: Input and Output apart, and both in one place. Every read
// must give the same in both, so any mixture of ranks in place and out of place gives it too.
class SymbolicRun {
 public:
  SymbolicRun(const Schedule& s, Findings& findings)
      : s_(s),
        findings_(findings),
        places_(s),
        input_(places_.count()),
        apart_(places_.count()),
        together_(places_.count()),
        inPlace_(s.shape.collective != Collective::AllToAll) {}

  void run() {
    start();
    std::vector<Held> moving;
    for (const Phase& phase : s_.phases) {
      moving.clear();
      const auto end = phase.firstTransfer + phase.transferCount;
      for (auto t = phase.firstTransfer; t < end; ++t) {
        const Ref& from = s_.transfers[t].from;
        for (const Piece& p : s_.piecesOf(from)) moving.push_back(read(from, p, "transfer", t));
      }
      std::size_t next = 0;
      for (auto t = phase.firstTransfer; t < end; ++t) {
        const Ref& to = s_.transfers[t].to;
        for (const Piece& p : s_.piecesOf(to)) write(to, p, moving[next++]);
      }
      for (auto i = phase.firstStep; i < phase.firstStep + phase.stepCount; ++i) step(i);
    }
    results();
  }

 private:
  void start() {
    for (int r = 0; r < s_.shape.ranks; ++r) {
      const Membership member = membershipOf(s_.shape, r);
      forEachPiece(inputBlocks(s_.shape, r), [&](const Piece& piece) {
        const auto place = places_.of(Ref{Space::Input, Width::Element, r, 0, 0}, piece);
        input_[place] = together_[place] = {places_.cell(piece), values_.raw(member.position)};
      });
    }
  }

  template <typename Fn>
  void forEachPiece(const std::vector<int>& blocks, const Fn& fn) const {
    for (const int b : blocks) {
      const auto shares = s_.shape.blocks[static_cast<std::size_t>(b)].shares.size();
      for (std::uint32_t i = 0; i < shares; ++i) fn(Piece{static_cast<std::uint32_t>(b), i, 0});
    }
  }

  static Width widthOf(ValueKind kind) {
    return kind == ValueKind::Partial ? Width::Accumulator : Width::Element;
  }

  Held read(const Ref& ref, const Piece& piece, const char* what, std::size_t index) {
    const auto place = places_.of(ref, piece);
    const Held held = ref.space == Space::Input ? input_[place] : apart_[place];
    if (held.value == 0) {
      findings_.add(4, fmt::format("{} {} reads {} of rank {} (block {} share {} slot {}) before "
                                   "anything was written",
                                   what, index, toString(ref.space), ref.rank, piece.block,
                                   piece.share, piece.slot));
    } else if (held.cell != places_.cell(piece) || widthOf(values_.kind(held.value)) != ref.width) {
      findings_.add(4, fmt::format("{} {} finds another share or width in slot {} of rank {}", what,
                                   index, piece.slot, ref.rank));
    } else if (inPlace_ && together_[place] != held) {
      findings_.add(9, fmt::format("{} {} reads {} in place instead of {} (block {} share {} on "
                                   "rank {})",
                                   what, index, values_.text(together_[place].value),
                                   values_.text(held.value), piece.block, piece.share, ref.rank));
    }
    return held;
  }

  void write(const Ref& ref, const Piece& piece, Held held) {
    const auto place = places_.of(ref, piece);
    apart_[place] = together_[place] = held;
  }

  void step(std::uint32_t index) {
    const Step& step = s_.steps[index];
    const auto pieces = s_.piecesOf(step.to);
    const auto inputs = s_.inputsOf(step);
    std::vector<Held> results;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      std::vector<ValueId> terms;
      for (const Ref& in : inputs) {
        terms.push_back(read(in, s_.piecesOf(in)[i], "step", index).value);
      }
      results.push_back({places_.cell(pieces[i]), result(index, step, terms, pieces[i])});
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto place = places_.of(step.to, pieces[i]);
      apart_[place] = results[i];
      if (!step.skipWhenAliased) together_[place] = results[i];
    }
  }

  ValueId result(std::uint32_t index, const Step& step, const std::vector<ValueId>& terms,
                 const Piece& piece) {
    if (step.kind == StepKind::Copy) return terms[0];
    const Block& block = s_.shape.blocks[piece.block];
    const int size = s_.shape.groups[static_cast<std::size_t>(block.group)].size();
    if (!reduces(s_.shape.collective)) {
      findings_.add(10, fmt::format("step {} reduces in {}", index, toString(s_.shape.collective)));
      return 0;
    }
    for (const ValueId term : terms) {
      const ValueKind kind = values_.kind(term);
      if (kind == ValueKind::Final) {
        findings_.add(10, fmt::format("step {} folds a finished value", index));
        return 0;
      }
      if (kind == ValueKind::None) return 0;
    }
    const ValueId partial = values_.fold(terms);
    if (step.to.width == Width::Accumulator) return partial;
    if (step.divisor != static_cast<std::uint32_t>(size)) {
      findings_.add(
          10, fmt::format("step {} divides by {} in a group of {}", index, step.divisor, size));
    }
    return values_.finished(partial, step.divisor);
  }

  ValueId expected(const Block& block) {
    if (!reduces(s_.shape.collective)) return values_.raw(block.source);
    const int size = s_.shape.groups[static_cast<std::size_t>(block.group)].size();
    return values_.finished(expectedFold(values_, size, block.destination),
                            static_cast<std::uint32_t>(size));
  }

  void results() {
    for (int r = 0; r < s_.shape.ranks; ++r) {
      forEachPiece(outputBlocks(s_.shape, r), [&](const Piece& piece) {
        const auto place = places_.of(Ref{Space::Output, Width::Element, r, 0, 0}, piece);
        const Held want{places_.cell(piece), expected(s_.shape.blocks[piece.block])};
        if (apart_[place] != want) {
          findings_.add(8, fmt::format("rank {} block {} share {} ends as {} instead of {}", r,
                                       piece.block, piece.share, values_.text(apart_[place].value),
                                       values_.text(want.value)));
        } else if (inPlace_ && together_[place] != want) {
          findings_.add(
              9, fmt::format("in place, rank {} block {} share {} ends as {} instead of {}", r,
                             piece.block, piece.share, values_.text(together_[place].value),
                             values_.text(want.value)));
        }
      });
    }
  }

  const Schedule& s_;
  Findings& findings_;
  Places places_;
  ValueTable values_;
  std::vector<Held> input_, apart_, together_;
  bool inPlace_;
};

}  // namespace

void checkValues(const Schedule& schedule, Findings& findings) {
  SymbolicRun(schedule, findings).run();
}

}  // namespace byway
