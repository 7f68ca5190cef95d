// SPDX-License-Identifier: BSD-3-Clause
// Runs a fuzz target on files, without a fuzzer: replay FILE-OR-FOLDER...
// Also on cut and flipped copies of small files, always the same ones, so that the plain test sees
// some malformed input, too.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz_target.h"

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kVariants = 64;            // of a file
constexpr std::size_t kMostVariedBytes = 20000;  // of a file that is varied

std::vector<fs::path> filesOf(int count, char** names) {
  std::vector<fs::path> files;
  for (int i = 0; i < count; ++i) {
    if (!fs::is_directory(names[i])) {
      files.emplace_back(names[i]);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(names[i])) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

void run(const Bytes& bytes) { LLVMFuzzerTestOneInput(bytes.data(), bytes.size()); }

void runVariants(const Bytes& bytes) {
  if (bytes.empty() || bytes.size() > kMostVariedBytes) return;
  for (std::size_t i = 0; i < kVariants; ++i) {
    const std::size_t at = (i * 2654435761u + i) % bytes.size();
    run(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at)));
    Bytes flipped = bytes;
    flipped[at] = static_cast<std::uint8_t>(flipped[at] ^ (1u << (i % 8)));
    run(flipped);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto files = filesOf(argc - 1, argv + 1);
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    const Bytes bytes{std::istreambuf_iterator<char>(in), {}};
    run(bytes);
    runVariants(bytes);
  }
  std::printf("%zu files replayed\n", files.size());
  return files.empty() ? 1 : 0;
}
