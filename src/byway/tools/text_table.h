// SPDX-License-Identifier: BSD-3-Clause
// Tables for a terminal or a file, and colours for a terminal alone.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace byway::tools {

enum class Colour { None, Good, Bad, Faint };

// The text in that colour where `file` is a terminal that shows colours (and NO_COLOR is unset).
std::string coloured(const std::string& text, Colour colour, std::FILE* file = stdout);

// Columns are as wide as their widest entry; numbers stand right, words left.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header);
  void add(std::vector<std::string> row, Colour colour = Colour::None);
  void print(std::FILE* file = stdout) const;
  std::size_t rows() const { return rows_.size(); }

 private:
  struct Row {
    std::vector<std::string> entries;
    Colour colour;
  };
  std::vector<std::string> header_;
  std::vector<Row> rows_;
};

}  // namespace byway::tools
