// SPDX-License-Identifier: BSD-3-Clause
// Packing: what the transport pays where a message has more pieces than it can announce, so that
// they are gathered into one first. 100 tables of mixed sizes against one memcpy of as many bytes,
// by turns. Budget: 0.8 of memcpy's bandwidth; the counter of_memcpy is the median of the pairs.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "byway/transport/ucx/staging.h"

namespace byway::ucx {
namespace {

constexpr std::size_t kTables = 100;
constexpr double kBar = 0.8;

// From 1 KB to 1 MB times `scale`, each once every ten tables and none a round number.
std::vector<std::size_t> tableSizes(std::size_t scale) {
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < kTables; ++i) {
    sizes.push_back(scale * (std::size_t{1} << (10 + i % 10)) + 4 * i);
  }
  return sizes;
}

template <typename Fn>
double secondsOf(const Fn& fn) {
  const auto began = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void packing(benchmark::State& state) {
  std::vector<std::vector<std::byte>> tables;
  std::vector<ConstBuffer> pieces;
  for (const std::size_t bytes : tableSizes(static_cast<std::size_t>(state.range(0)))) {
    tables.emplace_back(bytes, std::byte{7});
    pieces.emplace_back(tables.back().data(), bytes);
  }
  const std::size_t total = bytesOf(pieces);
  const std::vector<std::byte> flat(total, std::byte{9});
  std::vector<std::byte> out(total);
  benchmark::DoNotOptimize(out.data());
  StagingPool pool;
  auto first = pool.take(total);
  gatherPieces(pieces, first.memory.get());  // its pages are touched once, as of messages before
  pool.give(std::move(first));
  std::vector<double> ratios;
  for (auto _ : state) {
    const double copy = secondsOf([&] {
      std::memcpy(out.data(), flat.data(), total);
      benchmark::ClobberMemory();
    });
    const double pack = secondsOf([&] {
      auto block = pool.take(total);
      benchmark::DoNotOptimize(block.memory.get());
      gatherPieces(pieces, block.memory.get());
      benchmark::ClobberMemory();
      pool.give(std::move(block));
    });
    state.SetIterationTime(pack);
    ratios.push_back(copy / pack);
  }
  const double found = median(ratios);
  state.counters["of_memcpy"] = found;
  state.SetBytesProcessed(static_cast<std::int64_t>(total) * state.iterations());
  if (found < kBar) {
    const std::string text = "packs at " + std::to_string(found) + " of memcpy's bandwidth";
    state.SkipWithError(text.c_str());
  }
}
BENCHMARK(packing)->ArgName("scale")->Arg(1)->Arg(4)->UseManualTime()->Iterations(61);

}  // namespace
}  // namespace byway::ucx
