// SPDX-License-Identifier: BSD-3-Clause
// Cuts what arrives from a pipe into lines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace byway::tools {

class LineSplitter {
 public:
  // A longer line is cut, so that a program cannot fill the memory.
  static constexpr std::size_t kLongest = 1 << 16;

  // Calls `sink` for every line that is complete, without its newline.
  template <typename Sink>
  void add(std::string_view bytes, const Sink& sink) {
    while (!bytes.empty()) {
      const std::size_t take = std::min({bytes.find('\n'), bytes.size(), kLongest - open_.size()});
      open_.append(bytes.substr(0, take));
      bytes.remove_prefix(take);
      const bool ended = !bytes.empty() && bytes.front() == '\n';
      if (ended) bytes.remove_prefix(1);
      if (ended || open_.size() == kLongest) flush(sink);
    }
  }

  // The last line, where it had no newline.
  template <typename Sink>
  void finish(const Sink& sink) {
    if (!open_.empty()) flush(sink);
  }

 private:
  template <typename Sink>
  void flush(const Sink& sink) {
    sink(std::string_view(open_));
    open_.clear();
  }
  std::string open_;
};

}  // namespace byway::tools
