// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/values.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "byway/base/error.h"
#include "byway/base/types.h"

namespace byway::tools {
namespace {

constexpr double kMostBytes = 1e18;
constexpr std::size_t kMostValues = 4096;

struct Suffix {
  std::string_view text;
  double scale;
};
constexpr std::array kDecimal{Suffix{"k", 1e3}, Suffix{"K", 1e3}, Suffix{"M", 1e6},
                              Suffix{"G", 1e9}, Suffix{"T", 1e12}};
constexpr std::array kBinary{Suffix{"Ki", 1024.0}, Suffix{"Mi", 1048576.0},
                             Suffix{"Gi", 1073741824.0}};

[[noreturn]] void refuse(const std::string& option, std::string_view text, const char* expected) {
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{}: \"{}\" is not {}", option, text, expected));
}

std::optional<double> parseNumber(std::string_view text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

template <typename Suffixes>
double takeSuffix(std::string_view& text, const Suffixes& suffixes) {
  for (const Suffix& suffix : suffixes) {
    if (text.size() <= suffix.text.size()) continue;
    if (text.substr(text.size() - suffix.text.size()) != suffix.text) continue;
    text.remove_suffix(suffix.text.size());
    return suffix.scale;
  }
  return 0;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

int parseRank(const std::string& text, const std::string& option) {
  int value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || value < 0) {
    refuse(option, text, "a rank");
  }
  return value;
}

template <typename T, typename Parse>
T named(const std::string& name, const char* what, const std::string& names, const Parse& parse) {
  const std::optional<T> value = parse(name);
  if (value) return *value;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("\"{}\" is no {}; there are: {}", name, what, names));
}

constexpr const char* kRange = "a range such as 4Ki-1Gi or 4Ki:1Gi:x2";

// "4Ki-1Gi", "4Ki:1Gi" or "4Ki:1Gi:x2".
std::vector<std::uint64_t> sizeRange(const std::string& text, const std::string& option) {
  const auto parts = split(text, text.find(':') == std::string::npos ? '-' : ':');
  double factor = 4;
  if (parts.size() == 3) {
    const auto stated =
        parts[2].substr(0, 1) == "x" ? parseNumber(parts[2].substr(1)) : std::nullopt;
    factor = stated.value_or(0);
  }
  if (parts.size() > 3 || factor < 1.1) refuse(option, text, kRange);
  const std::uint64_t first = parseBytes(parts[0], option), last = parseBytes(parts[1], option);
  if (first == 0 || first > last) refuse(option, text, kRange);
  std::vector<std::uint64_t> sizes;
  for (auto size = static_cast<double>(first); size <= static_cast<double>(last); size *= factor) {
    sizes.push_back(static_cast<std::uint64_t>(size));
  }
  return sizes;
}

}  // namespace

std::uint64_t parseBytes(const std::string& text, const std::string& option) {
  std::string_view number = text;
  double scale = takeSuffix(number, kBinary);
  if (scale == 0) scale = takeSuffix(number, kDecimal);
  const auto value = parseNumber(number);
  const double bytes = value.value_or(-1) * (scale == 0 ? 1 : scale);
  if (bytes < 0 || bytes > kMostBytes || bytes != std::floor(bytes)) {
    refuse(option, text, "a number of bytes (suffixes k, M, G, Ki, Mi, Gi)");
  }
  return static_cast<std::uint64_t>(bytes);
}

std::vector<std::uint64_t> parseByteList(const std::string& text, const std::string& option) {
  std::vector<std::uint64_t> values;
  for (const auto& part : split(text, ',')) values.push_back(parseBytes(part, option));
  return values;
}

std::vector<std::uint64_t> parseSizes(const std::string& text, const std::string& option) {
  std::vector<std::uint64_t> sizes;
  for (const auto& part : split(text, ',')) {
    const auto more = part.find_first_of(":-") == std::string::npos
                          ? std::vector{parseBytes(part, option)}
                          : sizeRange(part, option);
    sizes.insert(sizes.end(), more.begin(), more.end());
  }
  return sizes;
}

double parseRate(const std::string& text, const std::string& option) {
  std::string_view number = text;
  const double scale = takeSuffix(number, kDecimal);
  const auto value = parseNumber(number);
  if (!value || *value <= 0) refuse(option, text, "a rate in bytes/s (such as 10M or 50G)");
  return *value * (scale == 0 ? 1 : scale);
}

std::vector<double> parseNumbers(const std::string& text, const std::string& option) {
  std::vector<double> values;
  for (const auto& part : split(text, ',')) {
    const auto value = parseNumber(part);
    if (!value || *value < 0) refuse(option, part, "a number that is not negative");
    values.push_back(*value);
  }
  return values;
}

std::vector<Group> parseGroups(const std::string& text, const std::string& option) {
  std::vector<Group> groups;
  for (const auto& list : split(text, ';')) {
    Group group;
    for (const auto& rank : split(list, ',')) group.ranks.push_back(parseRank(rank, option));
    groups.push_back(std::move(group));
    if (groups.size() > kMostValues) refuse(option, text.substr(0, 32), "a list of so many groups");
  }
  return groups;
}

std::vector<Group> regularGroups(int ranks, int active, bool fused) {
  std::vector<Group> groups;
  for (int first = 0; first + active <= ranks && (fused || groups.empty()); first += active) {
    Group group;
    for (int i = 0; i < active; ++i) group.ranks.push_back(first + i);
    groups.push_back(std::move(group));
  }
  return groups;
}

std::string collectiveNames() {
  std::string names;
#define BYWAY_X(id, name, reducing) names += (names.empty() ? "" : ", ") + std::string(name);
  BYWAY_COLLECTIVES(BYWAY_X)
#undef BYWAY_X
  return names;
}

Collective collectiveNamed(const std::string& name) {
  return named<Collective>(name, "collective", collectiveNames(), parseCollective);
}

DType dtypeNamed(const std::string& name) {
  std::string names;
#define BYWAY_X(id, text, bytes) names += (names.empty() ? "" : ", ") + std::string(text);
  BYWAY_DTYPES(BYWAY_X)
#undef BYWAY_X
  return named<DType>(name, "element type", names, parseDType);
}

ReduceOp reduceOpNamed(const std::string& name) {
  std::string names;
#define BYWAY_X(id, text) names += (names.empty() ? "" : ", ") + std::string(text);
  BYWAY_REDUCE_OPS(BYWAY_X)
#undef BYWAY_X
  return named<ReduceOp>(name, "reduction", names, parseReduceOp);
}

std::string bytesText(std::uint64_t bytes) {
  for (const auto& [text, scale] :
       {Suffix{"GB", 1e9}, Suffix{"GiB", 1073741824.0}, Suffix{"MB", 1e6}, Suffix{"MiB", 1048576.0},
        Suffix{"kB", 1e3}, Suffix{"KiB", 1024.0}}) {
    const auto whole = static_cast<std::uint64_t>(scale);
    if (bytes >= whole && bytes % whole == 0) return fmt::format("{} {}", bytes / whole, text);
  }
  constexpr double kMega = 1e6;
  if (static_cast<double>(bytes) >= kMega) {
    return fmt::format("{:.3g} MB", static_cast<double>(bytes) / kMega);
  }
  return fmt::format("{} B", bytes);
}

std::string groupsText(const std::vector<Group>& groups) {
  std::vector<std::string> lists;
  lists.reserve(groups.size());
  for (const auto& group : groups) lists.push_back(fmt::format("{}", fmt::join(group.ranks, ",")));
  return fmt::format("{}", fmt::join(lists, ";"));
}

}  // namespace byway::tools
