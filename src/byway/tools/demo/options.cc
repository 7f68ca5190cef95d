// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/demo/options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "byway/tools/option_checks.h"
#include "byway/tools/values.h"

namespace byway::tools {

DemoSettings DemoOptions::settings() const {
  DemoSettings settings;
  settings.rate = parseRate(rate, "--rate");
  settings.latency = latency / 1e6;
  settings.directSeconds = seconds;
  settings.pairs = pairs;
  settings.all = all;
  settings.quick = quick;
  settings.cells = cells;
  return settings;
}

std::vector<std::string> DemoOptions::arguments() const {
  std::vector<std::string> list{"--rate",    rate,
                                "--latency", fmt::format("{}", latency),
                                "--seconds", fmt::format("{}", seconds),
                                "--pairs",   std::to_string(pairs)};
  if (!cells.empty()) list.insert(list.end(), {"--cells", cells});
  if (all) list.emplace_back("--all");
  if (quick) list.emplace_back("--quick");
  return list;
}

void addDemoOptions(CLI::App& sub, DemoOptions& options) {
  constexpr int kMostPairs = 1000;
  constexpr double kMostLatency = 1e6, kMostSeconds = 60;
  sub.add_option("--rate", options.rate, "Bytes/s of every link (suffixes k, M, G)")
      ->capture_default_str();
  sub.add_option("--latency", options.latency, "Latency of every link in microseconds")
      ->capture_default_str()
      ->check(numberBetween(0, kMostLatency));
  sub.add_option("--seconds", options.seconds, "How long direct shall take; sizes follow from it")
      ->capture_default_str()
      ->check(numberBetween(0.001, kMostSeconds));
  sub.add_option("--pairs", options.pairs, "Pairs of runs, direct and chosen, for each cell")
      ->capture_default_str()
      ->check(wholeNumber(1, kMostPairs));
  sub.add_option("--cells", options.cells,
                 "Only cells whose name (\"allreduce A=2 single float32 n=8\") matches this "
                 "regular expression");
  sub.add_flag(
      "--all", options.all,
      "More cells: other types and roots, unlike groups, counts and links, parallel calls");
  sub.add_flag("--quick", options.quick, "Two cells of 0.1 s, no bars: a first look");
}

}  // namespace byway::tools
