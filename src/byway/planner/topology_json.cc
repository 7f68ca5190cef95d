// SPDX-License-Identifier: BSD-3-Clause
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/planner/topology.h"
#include "byway/schedule/json_reader.h"

namespace byway {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
constexpr std::int64_t kMaxRanks = 4096;
constexpr std::size_t kMaxTextBytes = std::size_t{512} << 20;  // 4096 x 4096 rates

// The shortest text that reads back as the same number; no limit is null.
std::string number(double value) { return value < kUnlimited ? fmt::format("{}", value) : "null"; }

std::string list(const std::vector<double>& values) {
  std::string result = "[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    result += (i == 0 ? "" : ", ") + number(values[i]);
  }
  return result + "]";
}

void expectSize(const JsonReader& reader, std::size_t found, std::size_t ranks) {
  if (found != ranks) reader.fail(fmt::format("has {} elements for {} ranks", found, ranks));
}

std::vector<double> readLinks(const JsonReader& reader, std::size_t ranks) {
  std::vector<double> result;
  result.reserve(ranks * ranks);
  const auto rows = reader.elements(kMaxRanks);
  expectSize(reader, rows.size(), ranks);
  for (std::size_t from = 0; from < ranks; ++from) {
    const auto row = rows[from].elements(kMaxRanks);
    expectSize(rows[from], row.size(), ranks);
    for (std::size_t to = 0; to < ranks; ++to) {
      const double rate = row[to].nonNegative();
      if (from == to && rate != 0) row[to].fail("must be 0: a rank has no link to itself");
      result.push_back(rate);
    }
  }
  return result;
}

// Null for the whole list or for single ranks: no limit.
std::vector<double> readPorts(const std::optional<JsonReader>& reader, std::size_t ranks) {
  std::vector<double> result(ranks, kUnlimited);
  if (!reader || reader->isNull()) return result;
  const auto values = reader->elements(kMaxRanks);
  expectSize(*reader, values.size(), ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    if (!values[r].isNull()) result[r] = values[r].nonNegative();
  }
  return result;
}

double readOptional(const JsonReader& root, const char* name) {
  const auto reader = root.optionalField(name);
  return !reader || reader->isNull() ? 0 : reader->nonNegative();
}

}  // namespace

std::string toJson(const Topology& topology) {
  std::string result = "{\"byway\": \"topology\", \"version\": 1,\n";
  if (!topology.name.empty()) result += fmt::format(" \"name\": {},\n", jsonQuoted(topology.name));
  result += fmt::format(" \"ranks\": {},\n \"links_Bps\": [", topology.ranks);
  const auto n = static_cast<std::size_t>(topology.ranks);
  for (std::size_t from = 0; from < n; ++from) {
    const auto row = topology.links.begin() + static_cast<std::ptrdiff_t>(from * n);
    result += from == 0 ? "\n  " : ",\n  ";
    result += list({row, row + static_cast<std::ptrdiff_t>(n)});
  }
  result += fmt::format("],\n \"egress_Bps\": {},\n \"ingress_Bps\": {},\n", list(topology.egress),
                        list(topology.ingress));
  result += fmt::format(" \"bus_Bps\": {},\n", topology.bus > 0 ? number(topology.bus) : "null");
  result += fmt::format(" \"alpha_s\": {}, \"message_s\": {}, \"reduce_Bps\": {}}}\n",
                        topology.alpha, topology.message, topology.reduce);
  return result;
}

Topology topologyFromJson(std::string_view json, const std::string& source) {
  const auto root = JsonReader::parse(json, source, kMaxTextBytes);
  root.expectKind("topology");
  root.onlyFields({"byway", "version", "name", "ranks", "links_Bps", "egress_Bps", "ingress_Bps",
                   "bus_Bps", "alpha_s", "message_s", "reduce_Bps"});
  Topology topology;
  const auto name = root.optionalField("name");
  topology.name = name ? name->text() : source;
  topology.ranks = static_cast<int>(root.field("ranks").integer(1, kMaxRanks));
  const auto ranks = static_cast<std::size_t>(topology.ranks);
  topology.links = readLinks(root.field("links_Bps"), ranks);
  topology.egress = readPorts(root.optionalField("egress_Bps"), ranks);
  topology.ingress = readPorts(root.optionalField("ingress_Bps"), ranks);
  topology.bus = readOptional(root, "bus_Bps");
  topology.alpha = readOptional(root, "alpha_s");
  topology.message = readOptional(root, "message_s");
  topology.reduce = readOptional(root, "reduce_Bps");
  return topology;
}

}  // namespace byway
