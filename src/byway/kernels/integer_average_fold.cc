// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "byway/kernels/fold.h"

namespace byway {
namespace {

// Elements of T, summed in 64 bit.
template <class T>
class IntegerAverage {
 public:
  using Sum = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;

  static void fold(const ReduceSpec& spec, void* to, std::span<const ReduceInput> inputs,
                   std::size_t count, bool /*streams*/) {
    for (std::size_t first = 0; first < count; first += kBlock) {
      const std::size_t n = std::min(kBlock, count - first);
      std::array<std::uint64_t, kBlock> sums{};  // unsigned, so that overflow wraps
      for (const ReduceInput& input : inputs) {
        if (input.width == Width::Element) {
          add<T>(sums, input.data, first, n);
        } else {
          add<Sum>(sums, input.data, first, n);
        }
      }
      if (spec.to == Width::Element) {
        store<T>(sums, spec.divisor, to, first, n);
      } else {
        store<Sum>(sums, 1, to, first, n);
      }
    }
  }

 private:
  static constexpr std::size_t kBlock = 256;
  using Sums = std::array<std::uint64_t, kBlock>;

  template <class In>
  static void add(Sums& sums, const void* data, std::size_t first, std::size_t n) {
    std::array<In, kBlock> values;
    std::memcpy(values.data(), static_cast<const std::byte*>(data) + first * sizeof(In),
                n * sizeof(In));
    for (std::size_t i = 0; i < n; ++i) {
      sums[i] += static_cast<std::uint64_t>(static_cast<Sum>(values[i]));
    }
  }

  template <class Out>
  static void store(const Sums& sums, std::uint32_t divisor, void* to, std::size_t first,
                    std::size_t n) {
    std::array<Out, kBlock> values;
    for (std::size_t i = 0; i < n; ++i) {
      const auto sum = static_cast<Sum>(sums[i]);
      values[i] = static_cast<Out>(divisor == 1 ? sum : sum / static_cast<Sum>(divisor));
    }
    std::memcpy(static_cast<std::byte*>(to) + first * sizeof(Out), values.data(), n * sizeof(Out));
  }
};

}  // namespace

Fold integerAverageFold(DType dtype) {
  switch (dtype) {
    case DType::UInt8:
      return IntegerAverage<std::uint8_t>::fold;
    case DType::UInt16:
      return IntegerAverage<std::uint16_t>::fold;
    case DType::UInt32:
      return IntegerAverage<std::uint32_t>::fold;
    case DType::UInt64:
      return IntegerAverage<std::uint64_t>::fold;
    case DType::Int8:
      return IntegerAverage<std::int8_t>::fold;
    case DType::Int16:
      return IntegerAverage<std::int16_t>::fold;
    case DType::Int32:
      return IntegerAverage<std::int32_t>::fold;
    case DType::Int64:
      return IntegerAverage<std::int64_t>::fold;
    case DType::Bool:
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
    case DType::Float64:
    case DType::Float8E4M3FN:
    case DType::Float8E5M2:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2FNUZ:
    case DType::Complex64:
    case DType::Complex128:
      return nullptr;
  }
  return nullptr;
}

}  // namespace byway
