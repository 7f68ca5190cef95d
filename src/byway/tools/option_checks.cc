// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/option_checks.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace byway::tools {
namespace {

// Of the whole text, without spaces.
template <typename T>
std::optional<T> parsed(const std::string& text) {
  T value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value);
  if (status != std::errc() || stop != end) return std::nullopt;
  return value;
}

// An option's help shows its type alone: the check has no description.
template <typename Accepts>
CLI::Validator check(Accepts accepts, std::string expected) {
  return CLI::Validator(
      [accepts = std::move(accepts), expected = std::move(expected)](const std::string& text) {
        return accepts(text) ? "" : fmt::format("\"{}\" is not {}", text, expected);
      },
      "");
}

}  // namespace

CLI::Validator wholeNumber(int least, int most) {
  const bool bounded = most < std::numeric_limits<int>::max();
  return check(
      [least, most](const std::string& text) {
        const auto value = parsed<int>(text);
        return value && *value >= least && *value <= most;
      },
      fmt::format("a whole number from {}{}", least, bounded ? fmt::format(" to {}", most) : ""));
}

CLI::Validator numberAboveZero() {
  return check(
      [](const std::string& text) {
        const auto value = parsed<double>(text);
        return value && std::isfinite(*value) && *value > 0;
      },
      "a number above 0");
}

CLI::Validator numberBetween(double least, double most) {
  return check(
      [least, most](const std::string& text) {
        const auto value = parsed<double>(text);
        return value && *value >= least && *value <= most;
      },
      fmt::format("a number from {} to {}", least, most));
}

CLI::Validator notEmpty(const char* expected) {
  return check([](const std::string& text) { return !text.empty(); }, expected);
}

}  // namespace byway::tools
