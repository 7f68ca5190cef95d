// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/bench/bench_report.h"

#include <unistd.h>

#include <cmath>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "byway/tools/text_table.h"
#include "byway/tools/values.h"

namespace byway::tools {
namespace {

constexpr double kGainMustBeTaken = 1.05;
constexpr double kMostUndecided = 0.02;
constexpr double kTooFast = 0.99, kDirectTolerance = 0.03;
constexpr Seconds kLinkTimeShows = 0.02;  // shorter runs are mostly wake-ups
constexpr double kRounding = 1e-9;        // of times added up in another order

using Complaint = std::function<std::string(const Measured&)>;

Check check(const std::vector<Measured>& cells, std::string name, bool failing,
            const Complaint& complaint) {
  Check result{std::move(name), true, failing, {}};
  for (const Measured& cell : cells) {
    const std::string text = complaint(cell);
    if (text.empty()) continue;
    result.held = false;
    result.missed.push_back(fmt::format("{}, {}: {}", cell.name, bytesText(cell.bytes), text));
  }
  return result;
}

Check decided(const std::vector<Measured>& cells, const StopRule& rule) {
  Check result = check(cells,
                       fmt::format("intervals are narrower than +-{:g} % after {} pairs",
                                   100 * rule.halfWidth, rule.most),
                       true, [](const Measured& c) {
                         return c.decided ? ""
                                          : fmt::format("undecided, {:.3f} to {:.3f}",
                                                        c.interval.low, c.interval.high);
                       });
  const double share =
      cells.empty() ? 0
                    : static_cast<double>(result.missed.size()) / static_cast<double>(cells.size());
  result.failing = share > kMostUndecided;
  return result;
}

std::string tooSlow(const Measured& cell, double bar) {
  if (cell.interval.high >= bar - kRounding) return "";
  return fmt::format("{:.4f} ({:.4f} to {:.4f}), {}", cell.speedup, cell.interval.low,
                     cell.interval.high, cell.route);
}

std::string notTaken(const Measured& cell) {
  if (!cell.samePlan || cell.predictedGain < kGainMustBeTaken) return "";
  return fmt::format("direct, though relay is predicted to be {:.3f} times as fast",
                     cell.predictedGain);
}

std::string tooFast(const Measured& cell) {
  if (cell.chosenBest >= kTooFast * cell.limitTime) return "";
  return fmt::format("{:.6f} s, the limit is {:.6f} s", cell.chosenBest, cell.limitTime);
}

std::string offLinkTime(const Measured& cell) {
  if (cell.directComputed < kLinkTimeShows) return "";
  const double ratio = cell.direct / cell.directComputed;
  if (std::abs(ratio - 1) <= kDirectTolerance) return "";
  return fmt::format("{:.4f} s, computed {:.4f} s ({:+.1f} %)", cell.direct, cell.directComputed,
                     100 * (ratio - 1));
}

std::string wrongValues(const Measured& cell) {
  return cell.verified ? "" : fmt::format("{} wrong", cell.wrong);
}

std::string secondsText(Seconds time) {
  constexpr double kMilli = 1e-3;
  return time < kMilli ? fmt::format("{:.2f} us", time * 1e6)
         : time < 1    ? fmt::format("{:.3f} ms", time * 1e3)
                       : fmt::format("{:.4f} s", time);
}

std::string verdict(const Measured& cell) {
  if (!cell.verified) return cell.wrong > 0 ? fmt::format("{} WRONG", cell.wrong) : "none";
  return "verified";
}

void printFlat(const std::vector<Measured>& cells) {
  constexpr double kGiga = 1e9;
  TextTable table({"collective", "type", "n", "size", "best", "median", "algorithm GB/s",
                   "bus GB/s", "runs", "route", "values"});
  for (const Measured& cell : cells) {
    table.add({cell.collective, cell.dtype, std::to_string(cell.ranks), bytesText(cell.bytes),
               secondsText(cell.chosenBest), secondsText(cell.chosen),
               fmt::format("{:.3f}", cell.algorithmBandwidth() / kGiga),
               fmt::format("{:.3f}", cell.busBandwidth() / kGiga), std::to_string(cell.samples),
               cell.route, verdict(cell)},
              cell.verified ? Colour::None : Colour::Bad);
  }
  table.print();
}

void printAgainst(const std::vector<Measured>& cells) {
  TextTable table({"collective", "type", "n", "size", "byway", "library", "its time", "ratio",
                   "interval", "pairs", "values"});
  for (const Measured& cell : cells) {
    table.add({cell.collective, cell.dtype, std::to_string(cell.ranks), bytesText(cell.bytes),
               secondsText(cell.chosen), cell.peer.value_or("-"),
               secondsText(cell.peerTime.value_or(0)), fmt::format("{:.3f}", cell.speedup),
               fmt::format("{:.3f}-{:.3f}", cell.interval.low, cell.interval.high),
               std::to_string(cell.samples), verdict(cell)},
              cell.verified ? Colour::None : Colour::Bad);
  }
  table.print();
  fmt::print("ratio: the library's time over Byway's, median of the pairs.\n");
}

}  // namespace

std::vector<Check> checksOf(const BenchSettings& settings, const std::vector<Measured>& cells) {
  const bool flat = settings.scenario == Scenario::Flat;
  std::vector<Check> all;
  const bool compared = std::any_of(cells.begin(), cells.end(),
                                    [](const Measured& c) { return c.verified || c.wrong > 0; });
  if (compared || !settings.isVirtual) {
    all.push_back(check(cells, "every value of every rank is right", true, wrongValues));
  }
  if (!settings.against.empty()) all.push_back(decided(cells, settings.rule));
  if (flat) return all;
  all.push_back(check(cells, fmt::format("no cell is below {:g} of direct", settings.bar), true,
                      [&](const Measured& c) { return tooSlow(c, settings.bar); }));
  all.push_back(check(cells, "relay is taken where it is predicted to gain 5 %", true, notTaken));
  all.push_back(check(cells, "no run is faster than 0.99 of the limit's time", true, tooFast));
  if (settings.isVirtual) return all;
  all.push_back(
      check(cells, "direct takes its computed link time, within 3 %", false, offLinkTime));
  all.push_back(decided(cells, settings.rule));
  return all;
}

void printBenchHeading(const BenchSettings& settings, std::size_t cells, std::size_t known) {
  fmt::print("{}, {} ranks, {}: {} cells", toString(settings.scenario), settings.ranks,
             settings.isVirtual ? "virtual clock, links " + settings.links.name
             : settings.scenario == Scenario::Flat
                 ? "processes of this host"
                 : "processes of this host, links " + settings.links.name,
             cells);
  if (known > 0) fmt::print(", {} of them from an earlier run", known);
  fmt::print(".\n\n");
  std::fflush(stdout);
}

void printBenchTable(const BenchSettings& settings, const std::vector<Measured>& cells) {
  if (!settings.against.empty()) return printAgainst(cells);
  if (settings.scenario == Scenario::Flat) return printFlat(cells);
  TextTable table({"collective", "A", "scenario", "live", "type", "n", "size", "direct", "best",
                   "chosen", "best", "speed-up", "interval", "limit", "% of limit", "pairs",
                   "route", "values"});
  for (const Measured& cell : cells) {
    const bool good = tooSlow(cell, settings.bar).empty() && cell.wrong == 0;
    table.add({cell.collective, cell.active, cell.scenario,
               cell.live > 0 ? std::to_string(cell.live) : "-", cell.dtype,
               std::to_string(cell.ranks), bytesText(cell.bytes), secondsText(cell.direct),
               secondsText(cell.directBest), secondsText(cell.chosen), secondsText(cell.chosenBest),
               fmt::format("{:.3f}", cell.speedup),
               fmt::format("{:.3f}-{:.3f}", cell.interval.low, cell.interval.high),
               fmt::format("{:.3f}", cell.limit.value_or(1)),
               fmt::format("{:.1f}", 100 * cell.speedup / cell.limit.value_or(1)),
               std::to_string(cell.samples), cell.route, verdict(cell)},
              good ? Colour::None : Colour::Bad);
  }
  table.print();
}

void printRefused(const std::vector<Refused>& refused) {
  if (refused.empty()) return;
  fmt::print("\n{} cells left out:\n", refused.size());
  for (const Refused& one : refused) fmt::print("          {}: {}\n", one.name, one.reason);
}

bool printBenchChecks(const std::vector<Check>& checks) {
  fmt::print("\n");
  bool good = true;
  for (const Check& one : checks) {
    const std::string word = one.held ? "held" : one.failing ? "MISSED" : "not held";
    fmt::print("{} {}\n",
               coloured(fmt::format("{:<9}", word), one.held ? Colour::Good : Colour::Bad),
               one.name);
    for (const std::string& line : one.missed) fmt::print("          {}\n", line);
    good = good && (one.held || !one.failing);
  }
  return good;
}

BenchProgress::BenchProgress(std::size_t known, std::vector<double> expected)
    : known_(known),
      expected_(std::move(expected)),
      begin_(SteadyClock::instance().now()),
      terminal_(::isatty(STDERR_FILENO) != 0) {}

std::string BenchProgress::left() const {
  const auto middle = expected_.begin() + static_cast<std::ptrdiff_t>(done_);
  const double past = std::accumulate(expected_.begin(), middle, 0.0);
  const double ahead = std::accumulate(middle, expected_.end(), 0.0);
  const Seconds elapsed = SteadyClock::instance().now() - begin_;
  // Until a cell is over the expectation, in seconds, is all there is.
  const Seconds time = past > 0 ? elapsed * ahead / past : ahead;
  return fmt::format("about {:.0f} s left", time);
}

void BenchProgress::running(const std::string& name, std::size_t samples) {
  if (!terminal_) return;
  fmt::print(stderr, "\r\033[K[{}/{}] {}", known_ + done_ + 1, known_ + expected_.size(), name);
  if (samples > 0) fmt::print(stderr, ", run {}", samples);
  fmt::print(stderr, " ({})", left());
  std::fflush(stderr);
}

void BenchProgress::finished(const Measured& cell) {
  ++done_;
  if (terminal_) return;
  const std::string gain = cell.peer    ? fmt::format("{:.3f} with {}", cell.speedup, *cell.peer)
                           : cell.limit ? fmt::format("{:.3f} of {:.3f}", cell.speedup, *cell.limit)
                                        : fmt::format("{:.3f} GB/s", cell.busBandwidth() / 1e9);
  fmt::print(stderr, "[{}/{}] {}, {}: {} ({})\n", known_ + done_, known_ + expected_.size(),
             cell.name, bytesText(cell.bytes), gain, left());
}

void BenchProgress::end() const {
  if (terminal_) fmt::print(stderr, "\r\033[K");
}

}  // namespace byway::tools
