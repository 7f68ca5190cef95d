// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/topology.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/base/hash.h"

namespace byway {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
constexpr int kMaxRanks = 4096;
constexpr std::size_t kMaxFileBytes = std::size_t{512} << 20;

// One fetch of 1 MB between two processes of one host ran at 10.1 GB/s, one of 4 KB took 2.8 us; an
// 8-byte message went one way in 0.1 to 0.3 us (UCX 1.22 over shared memory and CMA, 2 cores).
constexpr double kHostRate = 10e9;
constexpr double kHostAlpha = 1e-6;
constexpr double kHostMessage = 0.2e-6;

// A GPU mesh of today: 50 GB/s a link and 4 us a stage. The share of that which is each message's
// own is taken as 0.1 us, the least that a message cost on a host.
constexpr double kMeshRate = 50e9;
constexpr double kMeshAlpha = 4e-6;
constexpr double kMessageOfAlpha = 1.0 / 40;

// A switch: 400 GB/s a port (eight links of the mesh).
constexpr double kSwitchRate = 400e9;

[[noreturn]] void refuse(std::string_view text, const std::string& reason) {
  throw Error(ErrorCode::InvalidArgument, fmt::format("topology \"{}\": {}", text, reason));
}

Topology emptyTopology(std::string name, int ranks) {
  if (ranks < 1 || ranks > kMaxRanks) {
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("topology {}: {} ranks; 1 to {} are possible", name, ranks, kMaxRanks));
  }
  Topology topology;
  topology.name = std::move(name);
  topology.ranks = ranks;
  const auto n = static_cast<std::size_t>(ranks);
  topology.links.assign(n * n, 0.0);
  topology.egress.assign(n, kUnlimited);
  topology.ingress.assign(n, kUnlimited);
  return topology;
}

void joinAll(Topology& topology, double bytesPerSecond) {
  const auto n = static_cast<std::size_t>(topology.ranks);
  std::fill(topology.links.begin(), topology.links.end(), bytesPerSecond);
  for (std::size_t r = 0; r < n; ++r) topology.links[r * n + r] = 0;
}

std::optional<double> parseNumber(std::string_view text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<double> parseRate(std::string_view text) {
  double scale = 1;
  if (!text.empty()) {
    const char suffix = text.back();
    scale = suffix == 'k' ? 1e3 : suffix == 'M' ? 1e6 : suffix == 'G' ? 1e9 : 1;
    if (scale > 1) text.remove_suffix(1);
  }
  const auto value = parseNumber(text);
  return value && *value > 0 ? std::optional(*value * scale) : std::nullopt;
}

void expectRanks(std::string_view whole, int stated, std::optional<int> ranks) {
  if (!ranks || stated == *ranks) return;
  refuse(whole, fmt::format("it has {} ranks, the communicator {}", stated, *ranks));
}

// "N[@RATE[,LATENCY_US]]" behind a preset's name.
struct PresetArguments {
  int ranks = 0;
  double rate = 0;    // 0: not stated
  double alpha = -1;  // -1: not stated
};

PresetArguments parseArguments(std::string_view whole, std::string_view text,
                               std::optional<int> ranks) {
  PresetArguments result;
  const auto at = text.find('@');
  const auto count = text.substr(0, at);
  int stated = 0;
  const auto [end, status] = std::from_chars(count.data(), count.data() + count.size(), stated);
  if (status != std::errc() || end != count.data() + count.size() || stated < 1) {
    refuse(whole, fmt::format("\"{}\" is not a number of ranks", count));
  }
  expectRanks(whole, stated, ranks);
  result.ranks = stated;
  if (at == std::string_view::npos) return result;
  const auto rest = text.substr(at + 1);
  const auto comma = rest.find(',');
  const auto rate = parseRate(rest.substr(0, comma));
  if (!rate) {
    refuse(whole, fmt::format("\"{}\" is not a rate in bytes/s (such as 20M or 50G)",
                              rest.substr(0, comma)));
  }
  result.rate = *rate;
  if (comma == std::string_view::npos) return result;
  const auto latency = parseNumber(rest.substr(comma + 1));
  if (!latency || *latency < 0) {
    refuse(whole, fmt::format("\"{}\" is not a latency in microseconds", rest.substr(comma + 1)));
  }
  result.alpha = *latency * 1e-6;
  return result;
}

Topology meshPreset(std::string_view text, std::string_view arguments, std::optional<int> ranks) {
  const auto stated = parseArguments(text, arguments, ranks);
  const double alpha = stated.alpha < 0 ? kMeshAlpha : stated.alpha;
  auto result = meshTopology(stated.ranks, stated.rate > 0 ? stated.rate : kMeshRate, alpha,
                             alpha * kMessageOfAlpha);
  result.name = text;
  return result;
}

Topology switchPreset(std::string_view text, std::string_view arguments, std::optional<int> ranks) {
  const auto stated = parseArguments(text, arguments, ranks);
  const double alpha = stated.alpha < 0 ? kMeshAlpha : stated.alpha;
  auto result = switchTopology(stated.ranks, stated.rate > 0 ? stated.rate : kSwitchRate, alpha);
  result.message = alpha * kMessageOfAlpha;
  result.name = text;
  return result;
}

Topology readFile(std::string_view path, std::optional<int> ranks) {
  std::ifstream file{std::string(path), std::ios::binary};
  if (!file) {
    refuse(path,
           "neither a preset (host, mesh:N[@RATE[,LATENCY_US]], switch:N[@RATE]) nor a file that "
           "can be read");
  }
  std::string text;
  std::vector<char> block(1 << 16);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > kMaxFileBytes) refuse(path, "the file is too large for a topology");
  }
  auto result = topologyFromJson(text, std::string(path));
  expectRanks(path, result.ranks, ranks);
  return result;
}

}  // namespace

std::uint64_t Topology::hash() const {
  std::uint64_t result = hashMix(hashText("topology"), static_cast<std::uint64_t>(ranks));
  const auto mix = [&result](double value) {
    result = hashMix(result, std::bit_cast<std::uint64_t>(value + 0.0));
  };
  for (const auto* list : {&links, &egress, &ingress}) {
    for (const double value : *list) mix(value);
  }
  for (const double value : {bus, alpha, message, reduce}) mix(value);
  return result;
}

bool Topology::uniformMesh() const {
  const auto limited = [](double value) { return value < kUnlimited; };
  if (bus > 0 || std::any_of(egress.begin(), egress.end(), limited) ||
      std::any_of(ingress.begin(), ingress.end(), limited)) {
    return false;
  }
  const double rate = ranks > 1 ? link(0, 1) : 0;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (from != to && link(from, to) != rate) return false;
    }
  }
  return rate > 0;
}

Topology partOf(const Topology& whole, std::span<const int> ranks) {
  Topology part = emptyTopology(whole.name, static_cast<int>(ranks.size()));
  for (std::size_t from = 0; from < ranks.size(); ++from) {
    const int at = ranks[from];
    part.egress[from] = whole.egress.at(static_cast<std::size_t>(at));
    part.ingress[from] = whole.ingress.at(static_cast<std::size_t>(at));
    for (std::size_t to = 0; to < ranks.size(); ++to) {
      part.links[from * ranks.size() + to] = whole.link(at, ranks[to]);
    }
  }
  part.bus = whole.bus;
  part.alpha = whole.alpha;
  part.message = whole.message;
  part.reduce = whole.reduce;
  return part;
}

Topology hostTopology(int ranks) {
  auto result = emptyTopology("host", ranks);
  joinAll(result, kHostRate);
  result.bus = kHostRate;
  result.alpha = kHostAlpha;
  result.message = kHostMessage;
  return result;
}

Topology meshTopology(int ranks, double bytesPerSecond, double alpha, double message) {
  auto result = emptyTopology(fmt::format("mesh:{}", ranks), ranks);
  joinAll(result, bytesPerSecond);
  result.alpha = alpha;
  result.message = message;
  return result;
}

Topology switchTopology(int ranks, double bytesPerSecond, double alpha) {
  auto result = emptyTopology(fmt::format("switch:{}", ranks), ranks);
  joinAll(result, bytesPerSecond);
  std::fill(result.egress.begin(), result.egress.end(), bytesPerSecond);
  std::fill(result.ingress.begin(), result.ingress.end(), bytesPerSecond);
  result.alpha = alpha;
  return result;
}

namespace {

Topology parse(std::string_view text, std::optional<int> ranks) {
  if (text.empty()) refuse(text, "it is empty; \"host\" is the default");
  if (text == "host") {
    if (!ranks) refuse(text, "it states no number of ranks; name a mesh, a switch or a file");
    return hostTopology(*ranks);
  }
  constexpr std::string_view kMesh = "mesh:", kSwitch = "switch:";
  if (text.starts_with(kMesh)) return meshPreset(text, text.substr(kMesh.size()), ranks);
  if (text.starts_with(kSwitch)) return switchPreset(text, text.substr(kSwitch.size()), ranks);
  return readFile(text, ranks);
}

}  // namespace

Topology parseTopology(std::string_view text, int ranks) { return parse(text, ranks); }

Topology parseTopology(std::string_view text) { return parse(text, std::nullopt); }

}  // namespace byway
