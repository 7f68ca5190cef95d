// SPDX-License-Identifier: BSD-3-Clause
#include "byway/schedule/json_reader.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "byway/base/error.h"

namespace byway {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 16;

const Json& valueOf(const void* value) { return *static_cast<const Json*>(value); }

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::InvalidArgument, message);
}

// "file:line:column" of byte `offset`.
std::string placeOf(std::string_view text, const std::string& source, std::size_t offset) {
  const auto before = text.substr(0, std::min(text.size(), offset));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto lineStart = before.rfind('\n');
  const auto column = before.size() - (lineStart == std::string_view::npos ? 0 : lineStart + 1) + 1;
  return fmt::format("{}:{}:{}", source, line, column);
}

// The text, and how far the parser is in it.
class Progress {
 public:
  Progress(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;
    Iterator(const char* at, Progress& progress) : at_(at), progress_(&progress) {}
    const char& operator*() const { return *at_; }
    Iterator& operator++() {
      progress_->read_ = static_cast<std::size_t>(++at_ - progress_->text_.data());
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    const char* at_;
    Progress* progress_;
  };
  Iterator begin() { return {text_.data(), *this}; }
  Iterator end() { return {text_.data() + text_.size(), *this}; }

  // At what was read last.
  [[noreturn]] void fail(const std::string& reason) const { failAt(read_, reason); }
  // `byte` counts from 1; 0: before the first.
  [[noreturn]] void failAt(std::size_t byte, const std::string& reason) const {
    refuse(fmt::format("{}: {}", placeOf(text_, source_, byte == 0 ? 0 : byte - 1), reason));
  }

 private:
  std::string_view text_;
  const std::string& source_;
  std::size_t read_ = 0;
};

// The parser keeps the last of two fields of one name without a word, and has no bound on nesting.
class Checks {
 public:
  explicit Checks(const Progress& progress) : progress_(progress) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > kMaxDepth) progress_.fail(fmt::format("nested more than {} deep", kMaxDepth));
    if (event == Json::parse_event_t::object_start) names_.emplace_back();
    if (event == Json::parse_event_t::object_end) names_.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& name = parsed.get_ref<const std::string&>();
      if (!names_.back().insert(name).second) {
        progress_.fail(fmt::format("an object has two fields {}", jsonQuoted(name)));
      }
    }
    return true;
  }

 private:
  const Progress& progress_;
  std::vector<std::set<std::string>> names_;
};

// The parser's message after `prefix`'s end: without its own name and position, which counts bytes.
std::string reasonOf(const Json::exception& error, std::string_view prefixEnd) {
  const std::string_view what = error.what();
  const auto end = what.find(prefixEnd);
  return std::string(end == std::string_view::npos ? what : what.substr(end + prefixEnd.size()));
}

}  // namespace

struct JsonReader::Document {
  explicit Document(std::string name) : source(std::move(name)) {}
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  std::string source;
  Json root;
};

JsonReader::JsonReader(std::shared_ptr<const Document> document, const void* value,
                       std::string path)
    : document_(std::move(document)), value_(value), path_(std::move(path)) {}

JsonReader JsonReader::parse(std::string_view text, const std::string& source,
                             std::size_t maxBytes) {
  if (text.size() > maxBytes) {
    refuse(fmt::format("{}: {} bytes, more than the {} allowed", source, text.size(), maxBytes));
  }
  auto document = std::make_shared<Document>(source);
  Progress progress(text, source);
  try {
    document->root = Json::parse(progress.begin(), progress.end(), Checks(progress));
  } catch (const Json::parse_error& error) {
    progress.failAt(error.byte, reasonOf(error, ": "));
  } catch (const Json::exception& error) {  // a number out of range
    progress.fail(reasonOf(error, "] "));
  }
  const void* root = &document->root;
  return {std::move(document), root, {}};
}

JsonReader JsonReader::child(const void* value, const std::string& suffix) const {
  return {document_, value, path_ + suffix};
}

void JsonReader::fail(const std::string& reason) const {
  refuse(path_.empty() ? fmt::format("{}: {}", document_->source, reason)
                       : fmt::format("{}: {}: {}", document_->source, path_, reason));
}

void JsonReader::expectKind(std::string_view kind) const {
  const auto found = field("byway").text();
  if (found != kind) fail(fmt::format("is of kind {}, not \"{}\"", jsonQuoted(found), kind));
  const auto version = field("version").integer(0, 1 << 30);
  if (version != 1) fail(fmt::format("has version {}; this library reads version 1", version));
}

void JsonReader::onlyFields(std::initializer_list<std::string_view> names) const {
  const auto& json = valueOf(value_);
  if (!json.is_object()) fail(fmt::format("must be an object, not {}", json.type_name()));
  for (const auto& [name, value] : json.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      fail("unknown field " + jsonQuoted(name));
    }
  }
}

std::optional<JsonReader> JsonReader::optionalField(std::string_view name) const {
  const auto& json = valueOf(value_);
  if (!json.is_object()) fail(fmt::format("must be an object, not {}", json.type_name()));
  const auto found = json.find(std::string(name));
  if (found == json.end()) return std::nullopt;
  return child(&*found, (path_.empty() ? "" : ".") + std::string(name));
}

JsonReader JsonReader::field(std::string_view name) const {
  auto found = optionalField(name);
  if (!found) fail(fmt::format("field \"{}\" is missing", name));
  return *std::move(found);
}

std::vector<JsonReader> JsonReader::elements(std::size_t maxCount) const {
  const auto& json = valueOf(value_);
  if (!json.is_array()) fail(fmt::format("must be an array, not {}", json.type_name()));
  if (json.size() > maxCount) {
    fail(fmt::format("has {} elements, more than the {} allowed", json.size(), maxCount));
  }
  std::vector<JsonReader> result;
  result.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    result.push_back(child(&json[i], fmt::format("[{}]", i)));
  }
  return result;
}

std::vector<std::uint64_t> JsonReader::unsignedList(std::size_t maxCount,
                                                    std::uint64_t maxValue) const {
  const auto& json = valueOf(value_);
  if (!json.is_array()) fail(fmt::format("must be an array, not {}", json.type_name()));
  if (json.size() > maxCount) {
    fail(fmt::format("has {} elements, more than the {} allowed", json.size(), maxCount));
  }
  std::vector<std::uint64_t> result;
  result.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (!json[i].is_number_unsigned() || json[i].get<std::uint64_t>() > maxValue) {
      child(&json[i], fmt::format("[{}]", i))
          .fail(fmt::format("must be an integer from 0 to {}, not {}", maxValue,
                            json[i].is_number() ? json[i].dump() : json[i].type_name()));
    }
    result.push_back(json[i].get<std::uint64_t>());
  }
  return result;
}

bool JsonReader::isNull() const { return valueOf(value_).is_null(); }

bool JsonReader::boolean() const {
  const auto& json = valueOf(value_);
  if (!json.is_boolean()) fail(fmt::format("must be true or false, not {}", json.type_name()));
  return json.get<bool>();
}

std::string JsonReader::text() const {
  const auto& json = valueOf(value_);
  if (!json.is_string()) fail(fmt::format("must be a string, not {}", json.type_name()));
  return json.get<std::string>();
}

double JsonReader::nonNegative() const {
  const auto& json = valueOf(value_);
  if (!json.is_number()) fail(fmt::format("must be a number, not {}", json.type_name()));
  const auto value = json.get<double>();
  if (!std::isfinite(value) || value < 0) {
    fail(fmt::format("must be a finite number from 0, not {}", json.dump()));
  }
  return value + 0.0;  // no negative zero
}

std::int64_t JsonReader::integer(std::int64_t least, std::int64_t most) const {
  const auto& json = valueOf(value_);
  const bool fits = json.is_number_integer() &&
                    (!json.is_number_unsigned() ||
                     json.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX));
  if (!fits || json.get<std::int64_t>() < least || json.get<std::int64_t>() > most) {
    fail(fmt::format("must be an integer from {} to {}, not {}", least, most,
                     json.is_number() ? json.dump() : json.type_name()));
  }
  return json.get<std::int64_t>();
}

std::string jsonQuoted(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace byway
