// SPDX-License-Identifier: BSD-3-Clause
// What the fuzz targets share. Each *_fuzz.cc defines LLVMFuzzerTestOneInput; linked with libFuzzer
// it looks for inputs that break a promise, linked with replay_main.cc it runs files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "byway/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace byway::fuzz {

// A promise that holds for every input; unlike assert in every build.
inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

inline std::string_view textOf(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline std::span<const std::byte> bytesOf(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

// Refusals of a file say which file and what is wrong with it, on one line.
inline void requireGoodRefusal(const Error& error, std::string_view source) {
  const std::string_view what = error.what();
  require(error.code() == ErrorCode::InvalidArgument, "bad files are InvalidArgument");
  require(what.starts_with(source) && what.size() > source.size() + 2, "an error names its file");
  require(what.find('\n') == std::string_view::npos, "an error is one line");
}

}  // namespace byway::fuzz
