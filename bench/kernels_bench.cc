// SPDX-License-Identifier: BSD-3-Clause
// Reductions at memory speed. Each benchmark runs `reduce` and one or two plain loops of the same
// memory traffic (k reads, one write) in turns, and has the counters
//   of_triad  the triad loop's time over reduce's: a sum of as many float32 arrays, as the compiler
//             makes it, of the same bytes
//   of_avx2   the same for a loop in AVX2 intrinsics that does the same work (sums of float32 and
//             bfloat16 only)
// each the median over pairs of runs. Bars: at 64 MB of_triad >= 0.9; at 64 KB of_avx2 >= 0.75 for
// float32 and >= 0.9 for bfloat16.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "byway/kernels/reduce.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace byway {
namespace {

constexpr std::size_t kMostInputs = 8;

using Clock = std::chrono::steady_clock;

struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::uint8_t, FreeDeleter>;

Memory aligned(std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t alignment = bytes < kHugePage ? 64 : kHugePage;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  return Memory(static_cast<std::uint8_t*>(std::aligned_alloc(alignment, rounded)));
}

// Small numbers as float32 and bfloat16, any bits as other types.
void fill(std::uint8_t* data, std::size_t bytes, std::size_t input) {
  for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
    const float value = static_cast<float>((i / 4 + 7 * input) % 251) / 16 + 1;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, 4);
    bits = (bits & 0xffff0000u) | bits >> 16;
    std::memcpy(data + i, &bits, 4);
  }
}

struct Arrays {
  std::vector<Memory> inputs;
  Memory output;
  std::size_t bytes;

  Arrays(std::size_t count, std::size_t each) : output(aligned(each)), bytes(each) {
    for (std::size_t i = 0; i < count; ++i) {
      inputs.push_back(aligned(each));
      fill(inputs.back().get(), each, i);
    }
    std::memset(output.get(), 0, each);
  }
};

// Kept for all benchmarks of their sizes.
const Arrays& arraysOf(std::size_t inputs, std::size_t bytes) {
  static std::map<std::pair<std::size_t, std::size_t>, Arrays> all;
  return all.try_emplace({inputs, bytes}, inputs, bytes).first->second;
}

// The plain loops, for numbers of inputs that the compiler knows.
template <std::size_t kInputs>
void triad(float* __restrict out, const float* const* in, std::size_t count) {
  const float* __restrict rows[kInputs];
  for (std::size_t j = 0; j < kInputs; ++j) rows[j] = in[j];
  for (std::size_t i = 0; i < count; ++i) {
    float sum = rows[0][i];
    for (std::size_t j = 1; j < kInputs; ++j) sum += rows[j][i];
    out[i] = sum;
  }
}

void runTriad(const Arrays& arrays) {
  const float* in[kMostInputs] = {};
  for (std::size_t j = 0; j < arrays.inputs.size(); ++j) {
    in[j] = reinterpret_cast<const float*>(arrays.inputs[j].get());
  }
  auto* out = reinterpret_cast<float*>(arrays.output.get());
  const std::size_t count = arrays.bytes / sizeof(float);
  if (arrays.inputs.size() == 2) {
    triad<2>(out, in, count);
  } else {
    triad<8>(out, in, count);
  }
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) inline __m256 canonical(__m256 v) {
  const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
  return _mm256_blendv_ps(v, nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}

template <std::size_t kInputs>
__attribute__((target("avx2"))) void avx2Float32(float* out, const float* const* in,
                                                 std::size_t count) {
  for (std::size_t i = 0; i < count; i += 8) {
    __m256 sum = _mm256_loadu_ps(in[0] + i);
    for (std::size_t j = 1; j < kInputs; ++j) {
      sum = _mm256_add_ps(sum, _mm256_loadu_ps(in[j] + i));
    }
    _mm256_storeu_ps(out + i, canonical(sum));
  }
}

__attribute__((target("avx2"))) inline __m256 widened(const std::uint16_t* from) {
  const auto half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

// To nearest even, in the lower half of each lane.
__attribute__((target("avx2"))) inline __m256i rounded(__m256 v) {
  const __m256i bits = _mm256_castps_si256(canonical(v));
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  return _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
}

template <std::size_t kInputs>
__attribute__((target("avx2"))) void avx2BFloat16(std::uint16_t* out,
                                                  const std::uint16_t* const* in,
                                                  std::size_t count) {
  for (std::size_t i = 0; i < count; i += 16) {
    __m256 low = widened(in[0] + i), high = widened(in[0] + i + 8);
    for (std::size_t j = 1; j < kInputs; ++j) {
      low = _mm256_add_ps(low, widened(in[j] + i));
      high = _mm256_add_ps(high, widened(in[j] + i + 8));
    }
    const __m256i packed = _mm256_packus_epi32(rounded(low), rounded(high));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                        _mm256_permute4x64_epi64(packed, 0xd8));
  }
}

template <class T, class Loop>
void runAvx2(const Arrays& arrays, Loop two, Loop eight) {
  const T* in[kMostInputs] = {};
  for (std::size_t j = 0; j < arrays.inputs.size(); ++j) {
    in[j] = reinterpret_cast<const T*>(arrays.inputs[j].get());
  }
  (arrays.inputs.size() == 2 ? two : eight)(reinterpret_cast<T*>(arrays.output.get()), in,
                                            arrays.bytes / sizeof(T));
}

// Null where there is none.
std::function<void(const Arrays&)> avx2Loop(DType dtype, ReduceOp op) {
  if (!__builtin_cpu_supports("avx2") || op != ReduceOp::Sum) return nullptr;
  if (dtype == DType::Float32) {
    return [](const Arrays& a) { runAvx2<float>(a, avx2Float32<2>, avx2Float32<8>); };
  }
  if (dtype == DType::BFloat16) {
    return [](const Arrays& a) { runAvx2<std::uint16_t>(a, avx2BFloat16<2>, avx2BFloat16<8>); };
  }
  return nullptr;
}

#else

std::function<void(const Arrays&)> avx2Loop(DType, ReduceOp) { return nullptr; }

#endif

void runReduce(DType dtype, ReduceOp op, const Arrays& arrays) {
  ReduceInput inputs[kMostInputs] = {};
  for (std::size_t j = 0; j < arrays.inputs.size(); ++j) inputs[j].data = arrays.inputs[j].get();
  ReduceSpec spec{dtype, op};
  spec.divisor = static_cast<std::uint32_t>(arrays.inputs.size());
  reduce(spec, arrays.output.get(), {inputs, arrays.inputs.size()}, arrays.bytes / sizeOf(dtype));
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <class F>
double seconds(std::size_t repeats, F f) {
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < repeats; ++i) {
    f();
    benchmark::ClobberMemory();
  }
  return std::chrono::duration<double>(Clock::now() - begin).count() / static_cast<double>(repeats);
}

void reducing(benchmark::State& state, DType dtype, ReduceOp op) {
  const auto inputs = static_cast<std::size_t>(state.range(0));
  const Arrays& arrays = arraysOf(inputs, static_cast<std::size_t>(state.range(1)));
  constexpr std::size_t kBytesOfARun = std::size_t{8} << 20;  // far above the clock's own cost
  const std::size_t repeats =
      std::max<std::size_t>(1, kBytesOfARun / (arrays.bytes * (inputs + 1)));
  const auto avx2 = avx2Loop(dtype, op);
  const auto own = [&] { return seconds(repeats, [&] { runReduce(dtype, op, arrays); }); };
  std::vector<double> ofTriad, ofAvx2;
  for (auto _ : state) {
    // Whichever comes first in a pair may find other caches: take turns.
    const bool first = ofTriad.size() % 2 == 0;
    double mine = first ? own() : 0;
    const double plain = seconds(repeats, [&] { runTriad(arrays); });
    if (!first) mine = own();
    ofTriad.push_back(plain / mine);
    if (avx2) {
      const double other = seconds(repeats, [&] { avx2(arrays); });
      ofAvx2.push_back(other / own());
    }
    state.SetIterationTime(mine);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * (inputs + 1)) *
                          static_cast<std::int64_t>(arrays.bytes));
  state.counters["of_triad"] = median(ofTriad);
  if (avx2) state.counters["of_avx2"] = median(ofAvx2);
}

constexpr DType kDTypes[] = {
#define BYWAY_X(id, name, bytes) DType::id,
    BYWAY_DTYPES(BYWAY_X)
#undef BYWAY_X
};
constexpr ReduceOp kOps[] = {
#define BYWAY_X(id, name) ReduceOp::id,
    BYWAY_REDUCE_OPS(BYWAY_X)
#undef BYWAY_X
};

[[maybe_unused]] const bool kRegistered = [] {
  for (const DType dtype : kDTypes) {
    for (const ReduceOp op : kOps) {
      if (whyUnsupported(dtype, op) != nullptr) continue;
      const std::string name = std::string(toString(dtype)) + "/" + toString(op);
      for (const std::int64_t bytes : {64 << 10, 64 << 20}) {
        for (const std::int64_t inputs : {2, 8}) {
          benchmark::RegisterBenchmark(name.c_str(), reducing, dtype, op)
              ->ArgNames({"inputs", "bytes"})
              ->Args({inputs, bytes})
              ->UseManualTime()
              ->Unit(benchmark::kMicrosecond);
        }
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace byway
