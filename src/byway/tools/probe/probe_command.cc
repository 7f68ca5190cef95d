// SPDX-License-Identifier: BSD-3-Clause
// byway probe: measures the links between ranks and writes them down as a topology.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "byway/base/error.h"
#include "byway/tools/command.h"
#include "byway/tools/files.h"
#include "byway/tools/launcher.h"
#include "byway/tools/option_checks.h"
#include "byway/tools/probe/fit.h"
#include "byway/tools/probe/real_links.h"
#include "byway/tools/python.h"
#include "byway/tools/text_table.h"

namespace byway::tools {
namespace {

constexpr int kMostRanks = 256;
constexpr int kDefaultRanks = 8;

struct Options {
  int ranks = 0;  // 0: not stated
  std::string pace, output = "byway-topology.json", json;
  double seconds = 10;
};

// A mesh of 8 takes about 100 times one measurement's link time, a switch twice that.
Seconds linkTime(double seconds, int ranks) {
  constexpr double kMeasurements = 250, kLeast = 0.002, kMost = 0.2;
  const double scale = static_cast<double>(ranks) / kDefaultRanks;
  return std::clamp(seconds / (kMeasurements * scale), kLeast, kMost);
}

void printMatrix(const Fit& fit) {
  constexpr int kMostColumns = 16;
  const Topology& t = fit.topology;
  if (t.ranks > kMostColumns) return;
  std::vector<std::string> header{"from \\ to"};
  for (int to = 0; to < t.ranks; ++to) header.push_back(std::to_string(to));
  TextTable table(header);
  for (int from = 0; from < t.ranks; ++from) {
    std::vector<std::string> row{std::to_string(from)};
    for (int to = 0; to < t.ranks; ++to) {
      const double rate = t.link(from, to);
      row.push_back(from == to ? "" : rate > 0 ? rateText(rate) : "none");
    }
    table.add(row);
  }
  table.print();
}

void print(const Measurements& m, const Fit& fit, const Options& options) {
  const Topology& t = fit.topology;
  fmt::print("{} of {} ranks, links of {}\n", nameOf(fit.build), t.ranks, rateText(fit.usual));
  if (fit.build != Build::UniformMesh) printMatrix(fit);
  for (const std::string& note : fit.notes) fmt::print("  {}\n", note);
  fmt::print("latency {:.1f} us, {:.2f} us a message, sums {}\n", t.alpha * 1e6, t.message * 1e6,
             rateText(t.reduce));
  fmt::print("all links at once {}, by the rates {}\n", rateText(m.all.measured),
             rateText(m.all.expected));
  constexpr double kBusy = 0.1;
  if (m.starved > kBusy) {
    fmt::print(
        "warning: ranks waited for a core {:.0f} % of the time, so rates may be too low; "
        "measure on a machine with nothing else to do\n",
        m.starved * 100);
  }
  if (options.output != "-") fmt::print("topology: {}\n", options.output);
}

std::vector<double> measuredOf(const std::vector<Measurements::Sum>& sums) {
  std::vector<double> list;
  for (const auto& sum : sums) list.push_back(sum.measured);
  return list;
}

std::string toJson(const Measurements& m, const Fit& fit) {
  nlohmann::ordered_json json{{"byway", "probe"},
                              {"version", 1},
                              {"ranks", m.ranks},
                              {"kind", nameOf(fit.build)},
                              {"usual_Bps", fit.usual},
                              {"notes", fit.notes},
                              {"one_by_one", m.oneByOne},
                              {"links_Bps", nlohmann::ordered_json::array()},
                              {"egress_Bps", measuredOf(m.egress)},
                              {"ingress_Bps", measuredOf(m.ingress)},
                              {"all_Bps", m.all.measured},
                              {"all_expected_Bps", m.all.expected},
                              {"starved", m.starved},
                              {"alpha_s", m.alpha},
                              {"message_s", m.message},
                              {"reduce_Bps", m.reduce}};
  for (int from = 0; from < m.ranks; ++from) {
    const auto row = m.links.begin() + from * m.ranks;
    json["links_Bps"].push_back(std::vector<double>(row, row + m.ranks));
  }
  return json.dump(1) + "\n";
}

int runRank(const Options& options, const LaunchInfo& info) {
  if (options.ranks != 0 && options.ranks != info.size) {
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("--ranks {}, but the launcher started {}", options.ranks, info.size));
  }
  if (info.rank == 0) {
    requireWritable(options.output);
    if (!options.json.empty()) requireWritable(options.json);
  }
  RealLinks links;
  ProbeOptions probe;
  probe.linkTime = linkTime(options.seconds, links.ranks());
  const bool shows = links.rank() == 0 && ::isatty(STDERR_FILENO) != 0;
  if (shows) {
    probe.progress = [](const std::string& what) { fmt::print(stderr, "byway probe: {}\n", what); };
  }
  const Measurements measured = measure(links, probe);
  if (links.rank() == 0) {
    const Fit found = fit(measured);
    writeFileAtomically(options.output, byway::toJson(found.topology));
    if (!options.json.empty()) writeFileAtomically(options.json, toJson(measured, found));
    if (options.output != "-" && options.json != "-") print(measured, found, options);
    std::fflush(stdout);
  }
  links.barrier();
  return kOk;
}

// By itself: ranks of this host.
int startRanks(const Options& options) {
  requireWritable(options.output);
  if (!options.json.empty()) requireWritable(options.json);
  LaunchOptions job;
  job.title = "byway probe";
  job.ranks = options.ranks != 0 ? options.ranks : kDefaultRanks;
  job.program = {ownPath(),      "probe",     "--output",
                 options.output, "--seconds", fmt::format("{}", options.seconds)};
  if (!options.json.empty()) job.program.insert(job.program.end(), {"--json", options.json});
  if (!options.pace.empty()) job.environment = {{"BYWAY_PACE", options.pace}};
  job.onLine = [](int rank, Stream stream, std::string_view line) {
    if (rank == 0 && stream == Stream::Out)
      fmt::print("{}\n", line);
    else
      fmt::print(stderr, "{}\n", line);
  };
  return launch(job);
}

int probe(const Options& options) {
  if (!options.pace.empty()) parsePace(options.pace);  // what is wrong is said once
  const LaunchInfo info = launchInfo();
  return info.size > 1 ? runRank(options, info) : startRanks(options);
}

}  // namespace

void addProbeCommand(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand(
      "probe", "Measure the links between ranks and write a topology file for BYWAY_TOPOLOGY");
  sub->footer(
      "By itself it starts ranks on this host; on others start it with a launcher:\n"
      "  byway run -n 8 byway probe");
  auto options = std::make_shared<Options>();
  constexpr double kLeastSeconds = 0.5, kMostSeconds = 600;
  sub->add_option("-n,--ranks", options->ranks, "Number of ranks (8)")
      ->check(wholeNumber(2, kMostRanks));
  sub->add_option("-o,--output", options->output, "The topology file")->capture_default_str();
  sub->add_option("--json", options->json, "Write what was measured to FILE");
  sub->add_option("--seconds", options->seconds, "About how long to measure")
      ->capture_default_str()
      ->check(numberBetween(kLeastSeconds, kMostSeconds));
  sub->add_option("--pace", options->pace, "Slow the links of ranks that it starts: as BYWAY_PACE");
  sub->callback([&action, options] { action = [options] { return probe(*options); }; });
}

}  // namespace byway::tools
