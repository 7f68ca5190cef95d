// SPDX-License-Identifier: BSD-3-Clause
#include "byway/schedule/schedule.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/base/hash.h"

namespace byway {

const char* toString(Space space) {
  switch (space) {
    case Space::Input:
      return "input";
    case Space::Output:
      return "output";
    case Space::Stage:
      return "stage";
  }
  return "?";
}

const char* toString(Protocol protocol) {
  switch (protocol) {
    case Protocol::Messages:
      return "messages";
    case Protocol::Mapped:
      return "mapped";
  }
  return "?";
}

namespace {

std::uint64_t hashRef(const Schedule& s, const Ref& ref, std::uint64_t h) {
  h = hashMix(h, static_cast<std::uint64_t>(ref.space) << 40 |
                     static_cast<std::uint64_t>(ref.width) << 32 |
                     static_cast<std::uint32_t>(ref.rank));
  for (const Piece& p : s.piecesOf(ref)) {
    h = hashMix(h, static_cast<std::uint64_t>(p.block) << 32 | p.share);
    h = hashMix(h, p.slot);
  }
  return hashMix(h, ref.count);
}

std::uint64_t hashShape(const Shape& shape, std::uint64_t h) {
  h = hashMix(h, static_cast<std::uint64_t>(shape.collective) << 32 |
                     static_cast<std::uint32_t>(shape.ranks));
  h = hashMix(h, static_cast<std::uint64_t>(shape.groups.size()) << 32 | shape.blocks.size());
  for (const Group& g : shape.groups) {
    h = hashMix(h, g.ranks.size() << 16 | static_cast<std::uint32_t>(g.root));
    for (const int r : g.ranks) h = hashMix(h, static_cast<std::uint32_t>(r));
  }
  for (const Block& b : shape.blocks) {
    h = hashMix(
        h, static_cast<std::uint64_t>(b.source) << 32 | static_cast<std::uint32_t>(b.destination));
    h = hashMix(
        h, static_cast<std::uint64_t>(b.group) << 32 | static_cast<std::uint32_t>(b.directShares));
    h = hashMix(h, b.shares.size());
    for (const auto share : b.shares) h = hashMix(h, share);
  }
  return h;
}

std::string text(const Schedule& s, const Ref& ref) {
  std::string out = fmt::format("{}:{}{}[", ref.rank, toString(ref.space),
                                ref.width == Width::Accumulator ? "(acc)" : "");
  for (const Piece& p : s.piecesOf(ref)) {
    out += fmt::format("{}b{}.{}", out.back() == '[' ? "" : " ", p.block, p.share);
    if (ref.space == Space::Stage) out += fmt::format("@{}", p.slot);
  }
  return out + "]";
}

}  // namespace

std::uint64_t hashOf(const Schedule& s) {
  std::uint64_t h = hashShape(s.shape, hashText("byway schedule 1"));
  h = hashMix(h, s.phases.size());
  for (const Phase& phase : s.phases) {
    h = hashMix(h, static_cast<std::uint64_t>(phase.transferCount) << 32 | phase.stepCount);
    if (phase.protocol != Protocol::Messages)
      h = hashMix(h, static_cast<std::uint64_t>(phase.protocol));
  }
  for (const Transfer& t : s.transfers) h = hashRef(s, t.to, hashRef(s, t.from, h));
  for (const Step& step : s.steps) {
    h = hashMix(h, static_cast<std::uint64_t>(step.kind) << 40 |
                       static_cast<std::uint64_t>(step.skipWhenAliased) << 32 | step.divisor);
    h = hashMix(h, step.inputCount);
    h = hashRef(s, step.to, h);
    for (const Ref& in : s.inputsOf(step)) h = hashRef(s, in, h);
  }
  for (const auto slots : s.slots) h = hashMix(h, slots);
  return h;
}

std::string toText(const Schedule& s) {
  std::string out = fmt::format("schedule \"{}\": {} among {} ranks, hash {:016x}\n", s.name,
                                toString(s.shape.collective), s.shape.ranks, hashOf(s));
  for (std::size_t g = 0; g < s.shape.groups.size(); ++g) {
    const Group& group = s.shape.groups[g];
    out += fmt::format("group {}: ranks {}", g, fmt::join(group.ranks, " "));
    if (hasRoot(s.shape.collective)) out += fmt::format(", root {}", group.root);
    out += '\n';
  }
  for (std::size_t p = 0; p < s.phases.size(); ++p) {
    const Phase& phase = s.phases[p];
    out += fmt::format("phase {}{}\n", p, phase.protocol == Protocol::Mapped ? ", mapped" : "");
    for (std::uint32_t i = 0; i < phase.transferCount; ++i) {
      const Transfer& t = s.transfers[phase.firstTransfer + i];
      out += fmt::format("  {} -> {}\n", text(s, t.from), text(s, t.to));
    }
    for (std::uint32_t i = 0; i < phase.stepCount; ++i) {
      const Step& step = s.steps[phase.firstStep + i];
      out += fmt::format("  {} = {}", text(s, step.to),
                         step.kind == StepKind::Copy ? "copy" : "reduce");
      for (const Ref& in : s.inputsOf(step)) out += ' ' + text(s, in);
      if (step.divisor != 1) out += fmt::format(" (AVG divides by {})", step.divisor);
      if (step.skipWhenAliased) out += " unless in place";
      out += '\n';
    }
  }
  return out;
}

ScheduleBuilder::ScheduleBuilder(Shape shape, std::string name) {
  BYWAY_ASSERT(shape.ranks >= 0);
  schedule_.name = std::move(name);
  schedule_.slots.assign(static_cast<std::size_t>(shape.ranks), 0);
  schedule_.shape = std::move(shape);
}

void ScheduleBuilder::beginPhase(Protocol protocol) {
  Phase phase;
  phase.protocol = protocol;
  phase.firstTransfer = static_cast<std::uint32_t>(schedule_.transfers.size());
  phase.firstStep = static_cast<std::uint32_t>(schedule_.steps.size());
  schedule_.phases.push_back(phase);
}

Ref ScheduleBuilder::ref(Space space, int rank, std::span<const Piece> pieces, Width width) {
  Ref ref{space, width, rank, static_cast<std::uint32_t>(schedule_.pieces.size()),
          static_cast<std::uint32_t>(pieces.size())};
  for (Piece piece : pieces) {
    if (space != Space::Stage) piece.slot = 0;
    schedule_.pieces.push_back(piece);
  }
  return ref;
}

void ScheduleBuilder::transfer(const Ref& from, const Ref& to) {
  BYWAY_ASSERT(!schedule_.phases.empty() && schedule_.phases.back().stepCount == 0);
  schedule_.transfers.push_back({from, to});
  ++schedule_.phases.back().transferCount;
}

void ScheduleBuilder::reduce(const Ref& to, std::span<const Ref> inputs, int divisor) {
  BYWAY_ASSERT(!schedule_.phases.empty());
  Step step{StepKind::Reduce,
            false,
            static_cast<std::uint32_t>(divisor),
            to,
            static_cast<std::uint32_t>(schedule_.inputs.size()),
            static_cast<std::uint32_t>(inputs.size())};
  schedule_.inputs.insert(schedule_.inputs.end(), inputs.begin(), inputs.end());
  schedule_.steps.push_back(step);
  ++schedule_.phases.back().stepCount;
}

void ScheduleBuilder::copy(const Ref& to, const Ref& from, bool skipWhenAliased) {
  BYWAY_ASSERT(!schedule_.phases.empty());
  Step step{StepKind::Copy,
            skipWhenAliased,
            1,
            to,
            static_cast<std::uint32_t>(schedule_.inputs.size()),
            1};
  schedule_.inputs.push_back(from);
  schedule_.steps.push_back(step);
  ++schedule_.phases.back().stepCount;
}

Schedule ScheduleBuilder::finish() && { return std::move(schedule_); }

}  // namespace byway
