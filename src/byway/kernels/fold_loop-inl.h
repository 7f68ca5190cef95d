// SPDX-License-Identifier: BSD-3-Clause
// The one loop of all vector folds, once per Highway target: include inside foreach_target files
// only. What follows the last full block goes through a padded copy, so that every element takes
// the same instructions wherever it lies.
//
// A policy P is made from a ReduceSpec and has
//   Block                             what the registers of one step hold
//   blockLanes(), kMostBlockLanes     lanes (an element, or a part of a complex one) of a block
//   kOneForm                          elements and accumulators are loaded and stored alike
//   kLanesPerElement, kElementBytes, kAccumulatorBytes  of a lane
//   loadElement(p), storeElement(block, sink), combine(a, b)   a is the earlier operand
//   loadAccumulator(p), storeAccumulator(block, sink)          unless kOneForm
#if defined(BYWAY_KERNELS_FOLD_LOOP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BYWAY_KERNELS_FOLD_LOOP_INL_H_
#undef BYWAY_KERNELS_FOLD_LOOP_INL_H_
#else
#define BYWAY_KERNELS_FOLD_LOOP_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace byway {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Highway's unaligned loads take typed pointers of any alignment.
template <class D>
HWY_INLINE hn::Vec<D> loadLanes(D d, const std::uint8_t* from) {
  return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(from));
}

// Where a block's lanes go; past the caches if `streams`, and then `to` is aligned to the vector.
struct Sink {
  std::uint8_t* to;
  bool streams;
  template <class D>
  HWY_INLINE void put(D d, hn::Vec<D> v) const {
    auto* lanes = reinterpret_cast<hn::TFromD<D>*>(to);
    if (streams) {
      hn::Stream(v, d, lanes);
    } else {
      hn::StoreU(v, d, lanes);
    }
  }
};

template <class P>
class FoldLoop {
 public:
  FoldLoop(const ReduceSpec& spec, void* to, std::span<const ReduceInput> inputs)
      : policy_(spec),
        to_(static_cast<std::uint8_t*>(to)),
        toElement_(spec.to == Width::Element),
        inputs_(inputs) {}

  void run(std::size_t lanes, bool streams) const {
    const std::size_t head = streams ? lanesToAlignment() : lanes;
    if (head >= lanes) {
      blocks(0, lanes, false);
      return;
    }
    blocks(0, head, false);
    blocks(head, lanes, true);
    hwy::FlushStream();
  }

 private:
  using Block = typename P::Block;
  static constexpr std::size_t kMostBytes =
      P::kMostBlockLanes * std::max(P::kElementBytes, P::kAccumulatorBytes);

  static std::size_t bytesOf(bool element) {
    return element ? P::kElementBytes : P::kAccumulatorBytes;
  }
  static bool isElement(const ReduceInput& input) { return input.width == Width::Element; }
  static const std::uint8_t* at(const ReduceInput& input, std::size_t lane) {
    return static_cast<const std::uint8_t*>(input.data) + lane * bytesOf(isElement(input));
  }

  // So many lanes on, `to` is aligned for streamed stores; no number where it never is.
  std::size_t lanesToAlignment() const {
    constexpr std::size_t kLine = 64;
    const std::size_t bytes = (kLine - reinterpret_cast<std::uintptr_t>(to_) % kLine) % kLine;
    const std::size_t width = bytesOf(toElement_);
    return bytes % width == 0 ? bytes / width : SIZE_MAX;
  }

  HWY_INLINE Block load(bool element, const std::uint8_t* from) const {
    if constexpr (P::kOneForm) {
      return policy_.loadElement(from);
    } else {
      return element ? policy_.loadElement(from) : policy_.loadAccumulator(from);
    }
  }
  HWY_INLINE void store(const Block& block, Sink sink) const {
    if constexpr (P::kOneForm) {
      policy_.storeElement(block, sink);
    } else if (toElement_) {
      policy_.storeElement(block, sink);
    } else {
      policy_.storeAccumulator(block, sink);
    }
  }

  void blocks(std::size_t i, std::size_t end, bool streams) const {
    const std::size_t n = P::blockLanes();
    const std::size_t width = bytesOf(toElement_);
    for (; i + 4 * n <= end; i += 4 * n) fourBlocks(i, n, {to_ + i * width, streams}, n * width);
    for (; i + n <= end; i += n) oneBlock(i, {to_ + i * width, streams});
    if (i < end) partialBlock(i, end - i);
  }

  // Four at once hide the latency of an op, and of the loop over the inputs.
  HWY_INLINE void fourBlocks(std::size_t i, std::size_t n, Sink sink, std::size_t stride) const {
    const ReduceInput& first = inputs_[0];
    const bool firstElement = isElement(first);
    const std::size_t firstStride = n * bytesOf(firstElement);
    const std::uint8_t* p = at(first, i);
    Block b0 = load(firstElement, p), b1 = load(firstElement, p + firstStride);
    Block b2 = load(firstElement, p + 2 * firstStride),
          b3 = load(firstElement, p + 3 * firstStride);
    for (std::size_t j = 1; j < inputs_.size(); ++j) {
      const bool element = isElement(inputs_[j]);
      const std::size_t step = n * bytesOf(element);
      p = at(inputs_[j], i);
      b0 = policy_.combine(b0, load(element, p));
      b1 = policy_.combine(b1, load(element, p + step));
      b2 = policy_.combine(b2, load(element, p + 2 * step));
      b3 = policy_.combine(b3, load(element, p + 3 * step));
    }
    store(b0, sink);
    store(b1, {sink.to + stride, sink.streams});
    store(b2, {sink.to + 2 * stride, sink.streams});
    store(b3, {sink.to + 3 * stride, sink.streams});
  }

  HWY_INLINE void oneBlock(std::size_t i, Sink sink) const {
    Block block = load(isElement(inputs_[0]), at(inputs_[0], i));
    for (std::size_t j = 1; j < inputs_.size(); ++j) {
      block = policy_.combine(block, load(isElement(inputs_[j]), at(inputs_[j], i)));
    }
    store(block, sink);
  }

  void partialBlock(std::size_t i, std::size_t lanes) const {
    alignas(64) std::uint8_t padded[kMostBytes] = {};
    const auto loaded = [&](const ReduceInput& input) {
      std::memcpy(padded, at(input, i), lanes * bytesOf(isElement(input)));
      return load(isElement(input), padded);
    };
    Block block = loaded(inputs_[0]);
    for (std::size_t j = 1; j < inputs_.size(); ++j) {
      block = policy_.combine(block, loaded(inputs_[j]));
    }
    store(block, {padded, false});
    const std::size_t width = bytesOf(toElement_);
    std::memcpy(to_ + i * width, padded, lanes * width);
  }

  const P policy_;
  std::uint8_t* const to_;
  const bool toElement_;
  const std::span<const ReduceInput> inputs_;
};

template <class P>
void foldWith(const ReduceSpec& spec, void* to, std::span<const ReduceInput> inputs,
              std::size_t count, bool streams) {
  FoldLoop<P>(spec, to, inputs).run(count * P::kLanesPerElement, streams);
}

// One vector a block, of one type in memory and in registers.
template <class T, std::size_t kLanes = 1, bool kAlike = false>
struct OwnWidthPolicy {
  static constexpr bool kOneForm = kAlike;
  using D = hn::ScalableTag<T>;
  using Block = hn::Vec<D>;
  static constexpr std::size_t kLanesPerElement = kLanes;
  static constexpr std::size_t kElementBytes = sizeof(T), kAccumulatorBytes = sizeof(T);
  static constexpr std::size_t kMostBlockLanes = hn::MaxLanes(D());
  static std::size_t blockLanes() { return hn::Lanes(D()); }

  HWY_INLINE Block loadAccumulator(const std::uint8_t* p) const { return loadLanes(D(), p); }
  HWY_INLINE Block loadElement(const std::uint8_t* p) const { return loadLanes(D(), p); }
  HWY_INLINE void storeAccumulator(Block v, Sink sink) const { sink.put(D(), v); }
  HWY_INLINE void storeElement(Block v, Sink sink) const { sink.put(D(), v); }
};

// Every NaN of a float32 or float64 vector becomes the one of docs/reductions.md.
template <class D>
HWY_INLINE hn::Vec<D> canonicalNaN(D d, hn::Vec<D> v) {
  using Bits = hwy::MakeUnsigned<hn::TFromD<D>>;
  constexpr auto kNaN =
      static_cast<Bits>(sizeof(Bits) == 4 ? std::uint64_t{0x7fc00000u} : 0x7ff8000000000000u);
  const hn::RebindToUnsigned<D> bits;
  return hn::IfThenElse(hn::Eq(v, v), v, hn::BitCast(d, hn::Set(bits, kNaN)));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace byway
HWY_AFTER_NAMESPACE();

#endif
