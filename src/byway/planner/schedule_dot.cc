// SPDX-License-Identifier: BSD-3-Clause
#include <iterator>

#include <fmt/format.h>

#include "byway/planner/plan_text.h"
#include "byway/schedule/json_reader.h"

namespace byway {
namespace {

// A rank before phase `phase`. Members of a group share a colour; helpers have none.
std::string node(const Schedule& schedule, int rank, std::size_t phase) {
  constexpr const char* kColours[] = {"lightblue", "palegreen", "khaki",     "lightpink",
                                      "lightgrey", "plum",      "peachpuff", "paleturquoise"};
  const auto group = membershipOf(schedule.shape, rank).group;
  const auto style =
      group < 0 ? std::string("style=dashed")
                : fmt::format("style=filled fillcolor={}",
                              kColours[static_cast<std::size_t>(group) % std::size(kColours)]);
  return fmt::format("    r{}p{} [label=\"{}\" {}];\n", rank, phase, rank, style);
}

std::string row(const Schedule& schedule, std::size_t phase) {
  std::string result = "  { rank=same;\n";
  for (int rank = 0; rank < schedule.shape.ranks; ++rank) result += node(schedule, rank, phase);
  return result + "  }\n";
}

// Percent of the blocks that a transfer moves.
double percent(const Schedule& schedule, const Ref& ref) {
  double result = 0;
  for (const auto& piece : schedule.piecesOf(ref)) {
    result += static_cast<double>(schedule.shape.blocks[piece.block].shares[piece.share]);
  }
  return 100 * result / static_cast<double>(kWhole);
}

}  // namespace

std::string toDot(const Schedule& schedule) {
  auto result = fmt::format("digraph {} {{\n  rankdir=TB;\n  node [shape=circle];\n",
                            jsonQuoted(schedule.name.empty() ? "schedule" : schedule.name));
  for (std::size_t phase = 0; phase <= schedule.phases.size(); ++phase) {
    result += row(schedule, phase);
  }
  for (std::size_t p = 0; p < schedule.phases.size(); ++p) {
    // Time runs downwards also for ranks that do nothing.
    for (int rank = 0; rank < schedule.shape.ranks; ++rank) {
      result += fmt::format("  r{}p{} -> r{}p{} [style=invis weight=10];\n", rank, p, rank, p + 1);
    }
    const auto& phase = schedule.phases[p];
    for (std::uint32_t i = 0; i < phase.transferCount; ++i) {
      const auto& transfer = schedule.transfers[phase.firstTransfer + i];
      result += fmt::format("  r{}p{} -> r{}p{} [label=\"{:.3g}%\"{}];\n", transfer.from.rank, p,
                            transfer.to.rank, p + 1, percent(schedule, transfer.from),
                            transfer.from.width == Width::Accumulator ? " style=bold" : "");
    }
  }
  return result + "}\n";
}

}  // namespace byway
