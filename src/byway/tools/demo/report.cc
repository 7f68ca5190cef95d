// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/demo/report.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "byway/tools/text_table.h"
#include "byway/tools/values.h"

namespace byway::tools {
namespace {

std::string sizesText(const std::vector<DemoCell>& cells) {
  std::set<std::uint64_t> sizes;
  for (const DemoCell& cell : cells) sizes.insert(cell.bytes());
  std::vector<std::string> texts;
  texts.reserve(sizes.size());
  for (const std::uint64_t size : sizes) texts.push_back(bytesText(size));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string verdict(const CellResult& result) {
  if (!result.verified()) return fmt::format("{} WRONG", result.wrong());
  return "verified";
}

}  // namespace

void printHeading(const DemoSettings& settings, const std::vector<DemoCell>& cells,
                  bool onVirtualClock) {
  constexpr double kMega = 1e6;
  fmt::print("{} ranks, one link of {:.6g} MB/s and {:.6g} us for each ordered pair ({}).\n",
             kDemoRanks, settings.rate / kMega, settings.latency * kMega,
             onVirtualClock ? "on a virtual clock" : "processes of this host, slowed links");
  fmt::print(
      "{} cells; sizes {}; {} pair{} of runs, direct and chosen; every value is compared.\n\n",
      cells.size(), sizesText(cells), onVirtualClock ? 1 : settings.pairs,
      onVirtualClock || settings.pairs == 1 ? "" : "s");
  std::fflush(stdout);
}

void printTable(const DemoResults& results) {
  TextTable table({"collective", "A", "scenario", "type", "n", "size", "direct s", "chosen s",
                   "speed-up", "limit", "% of limit", "bar", "route", "values"});
  for (const CellResult& r : results.cells) {
    const bool good = r.verified() && (r.bar() <= 0 || r.speedup() >= r.bar());
    table.add({toString(r.cell.collective), r.cell.sizes(), r.cell.scenarioText(),
               toString(r.cell.dtype), std::to_string(r.cell.ranks), bytesText(r.cell.bytes()),
               fmt::format("{:.4f}", r.directMedian()), fmt::format("{:.4f}", r.chosenMedian()),
               fmt::format("{:.3f}", r.speedup()), fmt::format("{:.3f}", r.limit()),
               fmt::format("{:.1f}", 100 * r.speedup() / r.limit()),
               r.bar() > 0 ? fmt::format("{:.2f}", r.bar()) : "-", r.plan.route, verdict(r)},
              good ? Colour::None : Colour::Bad);
  }
  table.print();
}

bool printChecks(const DemoResults& results) {
  fmt::print("\n");
  bool good = true;
  for (const Check& check : results.checks()) {
    const std::string word = check.held ? "held" : check.failing ? "MISSED" : "not held";
    fmt::print("{} {}\n",
               coloured(fmt::format("{:<9}", word), check.held ? Colour::Good : Colour::Bad),
               check.name);
    for (const std::string& line : check.missed) fmt::print("          {}\n", line);
    good = good && (check.held || !check.failing);
  }
  if (results.coresIdle >= 0) {
    fmt::print("cores idle: {:.0f} % while the ranks communicated\n", 100 * results.coresIdle);
  }
  return good;
}

Progress::Progress(std::size_t cells, Seconds expected)
    : cells_(cells),
      begin_(SteadyClock::instance().now()),
      expected_(expected),
      terminal_(::isatty(STDERR_FILENO) != 0) {}

void Progress::running(std::size_t done, const std::string& name) {
  if (!terminal_) return;
  const Seconds left = std::max(0.0, expected_ - (SteadyClock::instance().now() - begin_));
  fmt::print(stderr, "\r\033[K[{}/{}] {} (about {:.0f} s left)", done, cells_, name, left);
  std::fflush(stderr);
}

void Progress::finished(std::size_t done, const CellResult& result) {
  if (terminal_) return;
  fmt::print(stderr, "[{}/{}] {}: {:.3f} of {:.3f}\n", done, cells_, result.cell.name(),
             result.speedup(), result.limit());
}

void Progress::end() {
  if (terminal_) fmt::print(stderr, "\r\033[K");
}

}  // namespace byway::tools
