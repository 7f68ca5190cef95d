// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/bench/bench_options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/tools/bench/memory.h"
#include "byway/tools/bench/peers/peer_install.h"
#include "byway/tools/option_checks.h"
#include "byway/tools/values.h"

namespace byway::tools {
namespace {

constexpr int kMostRanks = 64, kMostPairs = 1000;
constexpr double kMostLatency = 1e6;
constexpr double kShareOfMemory = 0.5;  // of what is available, where no budget is stated

[[noreturn]] void refuse(const std::string& reason) {
  throw Error(ErrorCode::InvalidArgument, reason);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (;;) {
    const auto at = text.find(separator, from);
    parts.push_back(text.substr(from, at - from));
    if (at == std::string::npos) return parts;
    from = at + 1;
  }
}

std::vector<Collective> collectivesOf(const std::string& text, bool production) {
  if (text == "all" && production) {
    return {Collective::AllReduce, Collective::ReduceScatter, Collective::AllToAll,
            Collective::AllGather};
  }
  if (text == "all") {
    return {
#define BYWAY_X(id, name, reducing) Collective::id,
        BYWAY_COLLECTIVES(BYWAY_X)
#undef BYWAY_X
    };
  }
  std::vector<Collective> all;
  for (const std::string& name : split(text, ',')) all.push_back(collectiveNamed(name));
  return all;
}

std::vector<int> activeOf(const std::string& text) {
  std::vector<int> all;
  for (const double number : parseNumbers(text, "--active")) {
    if (number != static_cast<int>(number)) refuse(fmt::format("--active: {} members", number));
    all.push_back(static_cast<int>(number));
  }
  return all;
}

std::vector<double> ratiosOf(const std::string& text) {
  if (text.empty()) return {};
  std::string list = text;
  for (char& c : list) c = c == ':' ? ',' : c;
  auto ratios = parseNumbers(list, "--counts");
  for (const double ratio : ratios) {
    if (ratio == 0) refuse(fmt::format("--counts: \"{}\": a group without data", text));
  }
  return ratios;
}

int liveOf(const std::string& text) {
  if (text.empty()) return -1;
  const double number = parseNumbers(text, "--live").at(0);
  if (number != static_cast<int>(number)) refuse(fmt::format("--live: {} groups", text));
  return static_cast<int>(number);
}

Topology linksOf(const BenchOptions& options) {
  if (options.scenario == Scenario::Flat) return hostTopology(options.ranks);
  if (!options.topology.empty()) {
    Topology topology = parseTopology(options.topology, options.ranks);
    if (!options.isVirtual && !topology.uniformMesh()) {
      refuse(fmt::format("--topology {}: processes run on a uniform mesh; others need --virtual",
                         options.topology));
    }
    return topology;
  }
  const std::string rate = !options.rate.empty() ? options.rate : options.isVirtual ? "50G" : "20M";
  const double latency = options.latency >= 0 ? options.latency : options.isVirtual ? 10 : 50;
  auto topology = meshTopology(options.ranks, parseRate(rate, "--rate"), latency / 1e6);
  topology.name = fmt::format("mesh:{}@{},{:g}", options.ranks, rate, latency);
  return topology;
}

std::string defaultSizes(const BenchOptions& options) {
  if (options.scenario == Scenario::Flat) return "4Ki:16Mi:x4";
  return options.isVirtual ? "4Ki:1Gi:x4" : "4Ki,64Ki,1Mi,8Mi";
}

double barOf(const BenchOptions& options) {
  if (!options.bar.empty()) return parseNumbers(options.bar, "--bar").at(0);
  return options.isVirtual ? 1 : 0.97;
}

}  // namespace

BenchSettings BenchOptions::settings() const {
  BenchSettings made;
  made.scenario = scenario;
  if (!shape.empty() && shape != "production") {
    refuse(fmt::format("--shape: \"{}\" is no shape; there is: production", shape));
  }
  made.production = !shape.empty();
  made.collectives = collectivesOf(collective, made.production);
  made.active = scenario == Scenario::Flat ? std::vector{ranks} : activeOf(active);
  made.sizes = parseSizes(sizes.empty() ? defaultSizes(*this) : sizes, "--sizes");
  made.dtype = dtypeNamed(dtype);
  made.ranks = ranks;
  made.links = linksOf(*this);
  made.ratios = ratiosOf(counts);
  made.groups = groups;
  made.live = liveOf(live);
  made.isVirtual = isVirtual;
  made.rule.least = pairs;
  made.rule.most = std::max(pairs, mostPairs);
  made.bar = barOf(*this);
  if (!against.empty()) {
    made.against = split(against, ',');
    checkPeers(made.against, made.dtype);
  }
  made.memory =
      memory.empty()
          ? static_cast<std::uint64_t>(kShareOfMemory * static_cast<double>(availableMemory()))
          : parseBytes(memory, "--memory");
  return made;
}

void addBenchOptions(CLI::App& sub, BenchOptions& options) {
  const bool flat = options.scenario == Scenario::Flat;
  const bool several =
      options.scenario == Scenario::Fused || options.scenario == Scenario::Parallel;
  sub.add_option("--collective", options.collective, "One, a list, or all")->capture_default_str();
  sub.add_option("--sizes", options.sizes,
                 "Bytes of the count, a rank's block or a pair's segment: a list of sizes and "
                 "ranges such as 4Ki:1Gi:x4 (default: " +
                     defaultSizes(options) + (flat ? ")" : "; with --virtual 4Ki:1Gi:x4)"));
  sub.add_option("--dtype", options.dtype, "Element type")->capture_default_str();
  sub.add_option("--ranks", options.ranks, "Ranks in all")
      ->capture_default_str()
      ->check(wholeNumber(2, kMostRanks));
  if (!flat) {
    sub.add_option("--active", options.active, "Members of a group, a list")->capture_default_str();
    sub.add_option("--topology", options.topology,
                   "The links: mesh:N@RATE,US, or with --virtual any topology; instead of --rate "
                   "and --latency");
    sub.add_option("--rate", options.rate,
                   "Bytes/s of every link (default: 20M; with --virtual 50G)");
    sub.add_option("--latency", options.latency,
                   "Microseconds of every link (default: 50; with --virtual 10)")
        ->check(numberBetween(0, kMostLatency));
    sub.add_option("--bar", options.bar,
                   "A cell fails whose interval lies below it (default: 0.97; with --virtual 1)");
    sub.add_flag("--virtual", options.isVirtual, "On a virtual clock: exact times, no waiting");
    sub.add_flag("--values", options.values,
                 "With --virtual: move real memory and compare every value");
    sub.add_option("--picture", options.picture, "Draw the speed-ups over the sizes into FILE");
  }
  if (flat) {
    sub.add_option(
        "--against", options.against,
        "Other libraries to measure in turns with: openmpi, mpich, impi, gloo; installed "
        "in environments of their own where they are not yet");
    sub.add_option("--peer-cache", options.peerCache,
                   "Where those environments are kept (default: byway/peers in the user's cache)");
  }
  if (several) {
    sub.add_option("--groups", options.groups,
                   "How many groups call (default: as many as there is room for)")
        ->check(wholeNumber(1));
    sub.add_option("--counts", options.counts, "The groups' counts as ratios: 634:560:553:479");
  }
  if (options.scenario == Scenario::Parallel) {
    sub.add_option("--live", options.live,
                   "How many live groups the calls state (default: all that call; 0: nothing)");
  }
  if (options.scenario == Scenario::Fused) {
    sub.add_option("--shape", options.shape,
                   "production: four groups of two with unequal totals near 12 GB, scaled to the "
                   "memory");
  }
  sub.add_option("--pairs", options.pairs, "Runs each way at least")
      ->capture_default_str()
      ->check(wholeNumber(1, kMostPairs));
  sub.add_option("--most-pairs", options.mostPairs, "Runs each way at most")
      ->capture_default_str()
      ->check(wholeNumber(1, kMostPairs));
  sub.add_option("--memory", options.memory,
                 "Bytes that a cell may need on all ranks (default: half of what is available)");
  sub.add_option("--json", options.json, "Write the results to FILE after every cell")
      ->capture_default_str();
  sub.add_option("--resume", options.resume,
                 "Take the cells that FILE holds; an unfinished --json file is taken by itself");
}

}  // namespace byway::tools
