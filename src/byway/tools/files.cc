// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "byway/base/error.h"

namespace byway::tools {
namespace {

[[noreturn]] void fail(const char* verb, const std::string& path, const char* reason) {
  throw Error(ErrorCode::InvalidArgument, fmt::format("cannot {} {}: {}", verb, path, reason));
}

// More than any schedule or result has; a device such as /dev/zero has no end.
constexpr std::size_t kMostBytes = std::size_t{256} << 20;

std::string readAll(std::istream& in, const std::string& path) {
  std::string text;
  std::vector<char> block(1 << 16);
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMostBytes) fail("read", path, "it is larger than 256 MiB");
  }
  return text;
}

std::string draftOf(const std::string& path) { return fmt::format("{}.{}.part", path, ::getpid()); }

}  // namespace

std::string readFile(const std::string& path) {
  if (path == "-") return readAll(std::cin, path);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) fail("read", path, "it is a folder");
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("read", path, std::strerror(errno));
  return readAll(in, path);
}

void writeFileAtomically(const std::string& path, std::string_view content) {
  if (path == "-") {
    std::fwrite(content.data(), 1, content.size(), stdout);
    return;
  }
  const std::string draft = draftOf(path);
  std::ofstream out(draft, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (out && std::rename(draft.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  std::remove(draft.c_str());
  fail("write", path, std::strerror(error));
}

void requireWritable(const std::string& path) {
  if (path == "-") return;
  if (path.empty()) fail("write", "\"\"", "it is no file name");
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) fail("write", path, "it is a folder");
  const std::string draft = draftOf(path);
  const std::ofstream out(draft, std::ios::binary);
  if (!out) fail("write", path, std::strerror(errno));
  std::remove(draft.c_str());
}

TemporaryFolder::TemporaryFolder(const std::string& prefix, std::string parent) {
  const char* base = std::getenv("TMPDIR");
  if (parent.empty()) parent = base != nullptr && *base != '\0' ? base : "/tmp";
  path_ = fmt::format("{}/{}.XXXXXX", parent, prefix);
  if (::mkdtemp(path_.data()) == nullptr) fail("make the folder", path_, std::strerror(errno));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace byway::tools
