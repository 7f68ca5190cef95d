// SPDX-License-Identifier: BSD-3-Clause
// Reads a JSON document field by field and says exactly where it is wrong. The parser's own types
// stay in the .cc file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace byway {

// A value within a document. Every function throws Error{InvalidArgument} that names the source and
// the value's path ("topo.json: links_Bps[2][0]: must be a number, not a string").
class JsonReader {
 public:
  // Refuses text above maxBytes, nesting above 16, and a name that an object states twice.
  // All three, and malformed text, are reported by line and column where there is one.
  static JsonReader parse(std::string_view text, const std::string& source, std::size_t maxBytes);

  // The document's kind and version, as {"byway": kind, "version": 1, ...} states them.
  void expectKind(std::string_view kind) const;
  // An object may have these fields and no others.
  void onlyFields(std::initializer_list<std::string_view> names) const;
  JsonReader field(std::string_view name) const;
  std::optional<JsonReader> optionalField(std::string_view name) const;

  // Elements of an array, of which there may be at most maxCount.
  std::vector<JsonReader> elements(std::size_t maxCount) const;
  // The same for integers, without a reader for each.
  std::vector<std::uint64_t> unsignedList(std::size_t maxCount, std::uint64_t maxValue) const;

  bool isNull() const;
  bool boolean() const;
  std::string text() const;
  double nonNegative() const;  // finite, not negative
  std::int64_t integer(std::int64_t least, std::int64_t most) const;

  [[noreturn]] void fail(const std::string& reason) const;

 private:
  struct Document;
  JsonReader(std::shared_ptr<const Document> document, const void* value, std::string path);
  JsonReader child(const void* value, const std::string& suffix) const;

  std::shared_ptr<const Document> document_;
  const void* value_;
  std::string path_;
};

// `text` as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
std::string jsonQuoted(std::string_view text);

}  // namespace byway
