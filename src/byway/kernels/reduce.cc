// SPDX-License-Identifier: BSD-3-Clause
// One pass over memory, tile by tile: the tile of every input is loaded into accumulator form and
// folded in, then the finished tile is stored. Scratch tiles stay in the first-level cache.
#include "byway/kernels/reduce.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "byway/kernels/float_environment.h"
#include "byway/kernels/tile_kernels.h"

namespace byway {
namespace {

constexpr std::size_t kTileBytes = 4096;

struct Tile {
  alignas(64) std::byte bytes[kTileBytes];
};

// How aligned the kernels want an array of `type`.
std::size_t alignmentOf(DType type) {
  const bool isComplex = type == DType::Complex64 || type == DType::Complex128;
  return isComplex ? sizeOf(type) / 2 : sizeOf(type);
}

bool isAligned(const void* address, DType type) {
  return reinterpret_cast<std::uintptr_t>(address) % alignmentOf(type) == 0;
}

class TileFold {
 public:
  explicit TileFold(const ReduceSpec& spec)
      : spec_(spec),
        accumulator_(accumulatorOf(spec.dtype, spec.op)),
        kernels_(tileKernels(spec.dtype, spec.op)),
        divide_(spec.to == Width::Element ? kernels_.divide : nullptr),
        store_(spec.to == Width::Element ? kernels_.storeElement : kernels_.storeAccumulator) {}

  void run(void* to, std::span<const ReduceInput> inputs, std::size_t count) {
    const std::size_t tile = kTileBytes / sizeOf(accumulator_);
    for (std::size_t first = 0; first < count; first += tile) {
      foldTile(to, inputs, first, std::min(tile, count - first));
    }
  }

 private:
  DType typeOf(Width width) const { return width == Width::Element ? spec_.dtype : accumulator_; }

  void foldTile(void* toData, std::span<const ReduceInput> inputs, std::size_t first,
                std::size_t count) {
    const DType toType = typeOf(spec_.to);
    void* to = static_cast<std::byte*>(toData) + first * sizeOf(toType);
    const bool storesDirectly = divide_ == nullptr && store_ == nullptr && isAligned(to, toType);
    const void* value = load(inputs[0], first, count, accumulatorTile_);
    for (std::size_t j = 1; j < inputs.size(); ++j) {
      const void* next = load(inputs[j], first, count, operandTile_);
      void* result = storesDirectly && j + 1 == inputs.size() ? to : accumulatorTile_.bytes;
      kernels_.combine(result, value, next, count);
      value = result;
    }
    store(to, toType, value, count);
  }

  // One tile of an input as accumulator values: in `buffer`, or where it lies if that serves.
  const void* load(const ReduceInput& input, std::size_t first, std::size_t count, Tile& buffer) {
    const bool raw = input.width == Width::Element;
    const DType type = typeOf(input.width);
    const Convert convert = raw ? kernels_.loadElement : kernels_.loadAccumulator;
    const void* value = static_cast<const std::byte*>(input.data) + first * sizeOf(type);
    if (!isAligned(value, type)) {
      Tile& aligned = convert != nullptr ? stagingTile_ : buffer;
      std::memcpy(aligned.bytes, value, count * sizeOf(type));
      value = aligned.bytes;
    }
    if (convert != nullptr) {
      convert(buffer.bytes, value, count);
      value = buffer.bytes;
    }
    if (raw && kernels_.scale != nullptr) {
      kernels_.scale(buffer.bytes, value, spec_.factor, count);
      value = buffer.bytes;
    }
    return value;
  }

  void store(void* to, DType toType, const void* value, std::size_t count) {
    if (divide_ != nullptr) {
      divide_(accumulatorTile_.bytes, value, spec_.divisor, count);
      value = accumulatorTile_.bytes;
    }
    const bool aligned = isAligned(to, toType);
    if (store_ != nullptr) {
      void* result = aligned ? to : stagingTile_.bytes;
      store_(result, value, count);
      value = result;
    }
    if (value != to) std::memcpy(to, value, count * sizeOf(toType));
  }

  const ReduceSpec& spec_;
  const DType accumulator_;
  const TileKernels kernels_;
  const Divide divide_;
  const Convert store_;
  Tile accumulatorTile_;
  Tile operandTile_;
  Tile stagingTile_;
};

}  // namespace

void reduce(const ReduceSpec& spec, void* to, std::span<const ReduceInput> inputs,
            std::size_t count) {
  assert(whyUnsupported(spec.dtype, spec.op) == nullptr);
  assert(!inputs.empty() && spec.divisor > 0);
  const DefaultFloatEnvironment environment;
  TileFold(spec).run(to, inputs, count);
}

}  // namespace byway
