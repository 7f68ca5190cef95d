// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/demo/oracle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "byway/base/error.h"

namespace byway::tools {
namespace {

constexpr std::size_t kGuard = 4096;
constexpr auto kGuardByte = std::byte{0xA5};
constexpr auto kPoison = std::byte{0xFF};  // a NaN in every format below, or -1

// Small integers: their sums are exact, so there is one right result.
struct Float32 {
  using Bits = std::uint32_t;
  static constexpr std::int32_t kRange = 1 << 20;
  static Bits encode(std::int32_t value) { return std::bit_cast<Bits>(static_cast<float>(value)); }
};
struct Float64 {
  using Bits = std::uint64_t;
  static constexpr std::int32_t kRange = 1 << 20;
  static Bits encode(std::int32_t value) { return std::bit_cast<Bits>(static_cast<double>(value)); }
};
template <typename Integer>
struct Whole {
  using Bits = Integer;
  static constexpr std::int32_t kRange = 1 << 20;
  static Bits encode(std::int32_t value) { return static_cast<Bits>(value); }
};
struct BFloat16 {
  using Bits = std::uint16_t;
  static constexpr std::int32_t kRange = 32;  // sums of eight fit eight bits
  static Bits encode(std::int32_t value) {
    return static_cast<Bits>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16);
  }
};

// Mixing steps of MurmurHash3's finaliser.
constexpr std::uint32_t mix(std::uint32_t x) {
  x ^= x >> 15;
  x *= 0x85EBCA77u;
  x ^= x >> 13;
  return x;
}

template <typename Format>
std::int32_t valueAt(std::uint32_t key, std::uint64_t index) {
  const std::uint32_t x = mix(static_cast<std::uint32_t>(index) * 0x9E3779B1u + key);
  return static_cast<std::int32_t>(x % (2 * Format::kRange)) - Format::kRange;
}

template <typename Bits>
Bits load(const std::byte* memory, std::uint64_t index) {
  Bits bits;
  std::memcpy(&bits, memory + index * sizeof bits, sizeof bits);
  return bits;
}

[[noreturn]] void noFormat(DType dtype) {
  throw Error(ErrorCode::InvalidArgument,
              std::string("values of ") + toString(dtype) +
                  " cannot be compared; of float32, float64, bfloat16, int32 and int64 they can");
}

// Calls `what` with the format of a type.
template <typename What>
auto withFormat(DType dtype, const What& what) {
  if (dtype == DType::Float32) return what(Float32());
  if (dtype == DType::Float64) return what(Float64());
  if (dtype == DType::BFloat16) return what(BFloat16());
  if (dtype == DType::Int32) return what(Whole<std::int32_t>());
  if (dtype == DType::Int64) return what(Whole<std::int64_t>());
  noFormat(dtype);
}

}  // namespace

void requireOracle(DType dtype) {
  withFormat(dtype, [](auto) {});
}

DemoBuffers::DemoBuffers(const DemoCell& cell, int rank) : cell_(cell), rank_(rank) {
  for (std::size_t g = 0; g < cell.groups.size(); ++g) {
    const auto& members = cell.groups[g].ranks;
    const auto mine = std::find(members.begin(), members.end(), rank);
    if (mine != members.end()) {
      count_ = cell.counts[g];
      layOut(static_cast<int>(g), static_cast<int>(mine - members.begin()));
    }
  }
  outputBytes_ = parts_.size() * blockBytes();
  input_.assign(inputBytes_ + 2 * kGuard, kGuardByte);
  output_.assign(outputBytes_ + 2 * kGuard, kGuardByte);
}

// The layouts of docs/collectives.md, in words of positions in the group.
void DemoBuffers::layOut(int groupIndex, int position) {
  const Group& group = cell_.groups[static_cast<std::size_t>(groupIndex)];
  const bool root = position == group.root;
  const int rootRank = group.ranks[static_cast<std::size_t>(group.root)];
  const auto blocks = group.ranks.size();
  const std::uint64_t own = static_cast<std::uint64_t>(position) * count_;
  std::size_t inputs = 0;
  switch (cell_.collective) {
    case Collective::AllReduce:
      inputs = 1;
      parts_ = {{group.ranks, 0}};
      break;
    case Collective::Reduce:
      inputs = 1;
      if (root) parts_ = {{group.ranks, 0}};
      break;
    case Collective::Broadcast:
      inputs = root ? 1 : 0;
      parts_ = {{{rootRank}, 0}};
      break;
    case Collective::AllGather:
      inputs = 1;
      for (const int from : group.ranks) parts_.push_back({{from}, 0});
      break;
    case Collective::Gather:
      inputs = 1;
      if (root) {
        for (const int from : group.ranks) parts_.push_back({{from}, 0});
      }
      break;
    case Collective::ReduceScatter:
      inputs = blocks;
      parts_ = {{group.ranks, own}};
      break;
    case Collective::Scatter:
      inputs = root ? blocks : 0;
      parts_ = {{{rootRank}, own}};
      break;
    case Collective::AllToAll:
      inputs = blocks;
      for (const int from : group.ranks) parts_.push_back({{from}, own});
      break;
  }
  inputBytes_ = inputs * blockBytes();
}

std::size_t DemoBuffers::blockBytes() const { return count_ * sizeOf(cell_.dtype); }

std::span<std::byte> DemoBuffers::part(std::vector<std::byte>& memory, std::size_t bytes) {
  return std::span(memory).subspan(kGuard, bytes);
}

std::uint32_t DemoBuffers::keyOf(int rank, int call) const {
  std::uint32_t key = mix(static_cast<std::uint32_t>(cell_.number) + 0x9E3779B1u);
  key = mix(key * 0xC2B2AE3Du + static_cast<std::uint32_t>(call));
  return mix(key * 0xC2B2AE3Du + static_cast<std::uint32_t>(rank));
}

template <typename Format>
void DemoBuffers::fill(int call) {
  const std::uint32_t key = keyOf(rank_, call);
  std::byte* const memory = input().data();
  const std::uint64_t elements = inputBytes_ / sizeof(typename Format::Bits);
  for (std::uint64_t i = 0; i < elements; ++i) {
    const auto bits = Format::encode(valueAt<Format>(key, i));
    std::memcpy(memory + i * sizeof bits, &bits, sizeof bits);
  }
}

void DemoBuffers::prepare(int call) {
  withFormat(cell_.dtype, [&](auto format) { fill<decltype(format)>(call); });
  std::ranges::fill(output(), kPoison);
}

template <typename Format>
std::uint64_t DemoBuffers::wrongElements(int call) const {
  using Bits = typename Format::Bits;
  std::uint64_t wrong = 0;
  const std::byte* const in = input_.data() + kGuard;
  const std::uint32_t own = keyOf(rank_, call);
  for (std::uint64_t i = 0; i < inputBytes_ / sizeof(Bits); ++i) {
    wrong += load<Bits>(in, i) != Format::encode(valueAt<Format>(own, i)) ? 1 : 0;
  }
  const std::byte* out = output_.data() + kGuard;
  std::vector<std::uint32_t> keys;
  for (const Part& one : parts_) {
    keys.clear();
    for (const int rank : one.from) keys.push_back(keyOf(rank, call));
    for (std::uint64_t i = 0; i < count_; ++i) {
      std::int32_t sum = 0;
      for (const std::uint32_t key : keys) sum += valueAt<Format>(key, one.offset + i);
      wrong += load<Bits>(out, i) != Format::encode(sum) ? 1 : 0;
    }
    out += blockBytes();
  }
  return wrong;
}

std::uint64_t DemoBuffers::wrongGuards() const {
  std::uint64_t wrong = 0;
  for (const auto* memory : {&input_, &output_}) {
    const auto isGuard = [](std::byte b) { return b == kGuardByte; };
    wrong += kGuard - static_cast<std::uint64_t>(
                          std::count_if(memory->begin(), memory->begin() + kGuard, isGuard));
    wrong += kGuard - static_cast<std::uint64_t>(
                          std::count_if(memory->end() - kGuard, memory->end(), isGuard));
  }
  return wrong;
}

std::uint64_t DemoBuffers::countWrong(int call) const {
  const std::uint64_t guards = wrongGuards();
  return guards + withFormat(cell_.dtype,
                             [&](auto format) { return wrongElements<decltype(format)>(call); });
}

std::uint64_t DemoBuffers::checked() const {
  return (inputBytes_ + outputBytes_) / sizeOf(cell_.dtype) + 4 * kGuard;
}

}  // namespace byway::tools
