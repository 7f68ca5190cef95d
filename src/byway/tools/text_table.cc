// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/text_table.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace byway::tools {
namespace {

bool showsColours(std::FILE* file) {
  const char* term = std::getenv("TERM");
  return ::isatty(::fileno(file)) != 0 && std::getenv("NO_COLOR") == nullptr &&
         (term == nullptr || std::string_view(term) != "dumb");
}

const char* codeOf(Colour colour) {
  switch (colour) {
    case Colour::None:
      return "";
    case Colour::Good:
      return "\033[32m";
    case Colour::Bad:
      return "\033[31m";
    case Colour::Faint:
      return "\033[2m";
  }
  return "";
}

bool isNumber(const std::string& text) {
  return text.empty() || text == "-" || std::isdigit(static_cast<unsigned char>(text[0])) != 0;
}

}  // namespace

std::string coloured(const std::string& text, Colour colour, std::FILE* file) {
  if (colour == Colour::None || !showsColours(file)) return text;
  return fmt::format("{}{}\033[0m", codeOf(colour), text);
}

TextTable::TextTable(std::vector<std::string> header) : header_(std::move(header)) {}

void TextTable::add(std::vector<std::string> row, Colour colour) {
  row.resize(header_.size());
  rows_.push_back({std::move(row), colour});
}

void TextTable::print(std::FILE* file) const {
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t c = 0; c < header_.size(); ++c) {
    std::size_t width = header_[c].size();
    bool numbers = true;
    for (const Row& row : rows_) {
      width = std::max(width, row.entries[c].size());
      numbers = numbers && isNumber(row.entries[c]);
    }
    widths.push_back(width);
    right.push_back(numbers && !rows_.empty());
  }
  const auto line = [&](const std::vector<std::string>& entries) {
    std::string text;
    for (std::size_t c = 0; c < entries.size(); ++c) {
      text += right[c] ? fmt::format("{:>{}}", entries[c], widths[c])
                       : fmt::format("{:<{}}", entries[c], widths[c]);
      text += "  ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  fmt::print(file, "{}\n", coloured(line(header_), Colour::Faint, file));
  for (const Row& row : rows_) {
    fmt::print(file, "{}\n", coloured(line(row.entries), row.colour, file));
  }
}

}  // namespace byway::tools
