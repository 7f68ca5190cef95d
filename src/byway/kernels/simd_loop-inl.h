// SPDX-License-Identifier: BSD-3-Clause
// Vector loops over arrays, once per Highway target: include inside foreach_target files only.
// The rest after the last full vector goes through a padded copy, so that every element takes the
// same instructions wherever it lies.
#if defined(BYWAY_KERNELS_SIMD_LOOP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BYWAY_KERNELS_SIMD_LOOP_INL_H_
#undef BYWAY_KERNELS_SIMD_LOOP_INL_H_
#else
#define BYWAY_KERNELS_SIMD_LOOP_INL_H_
#endif

#include <cstddef>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace byway {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// out[i] = f(in[i]); both descriptors have the same number of lanes.
template <class DOut, class DIn, class F>
void mapLanes(DOut dOut, DIn dIn, void* outData, const void* inData, std::size_t count, F f) {
  using Out = hn::TFromD<DOut>;
  using In = hn::TFromD<DIn>;
  auto* out = static_cast<Out*>(outData);
  const auto* in = static_cast<const In*>(inData);
  const std::size_t lanes = hn::Lanes(dIn);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(f(hn::LoadU(dIn, in + i)), dOut, out + i);
  if (i == count) return;
  In padded[hn::MaxLanes(dIn)] = {};
  Out result[hn::MaxLanes(dIn)];
  std::memcpy(padded, in + i, (count - i) * sizeof(In));
  hn::StoreU(f(hn::LoadU(dIn, padded)), dOut, result);
  std::memcpy(out + i, result, (count - i) * sizeof(Out));
}

// out[i] = f(a[i], b[i]).
template <class D, class F>
void zipLanes(D d, void* outData, const void* aData, const void* bData, std::size_t count, F f) {
  using T = hn::TFromD<D>;
  auto* out = static_cast<T*>(outData);
  const auto* a = static_cast<const T*>(aData);
  const auto* b = static_cast<const T*>(bData);
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  }
  if (i == count) return;
  T paddedA[hn::MaxLanes(d)] = {};
  T paddedB[hn::MaxLanes(d)] = {};
  std::memcpy(paddedA, a + i, (count - i) * sizeof(T));
  std::memcpy(paddedB, b + i, (count - i) * sizeof(T));
  hn::StoreU(f(d, hn::LoadU(d, paddedA), hn::LoadU(d, paddedB)), d, paddedA);
  std::memcpy(out + i, paddedA, (count - i) * sizeof(T));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace byway
HWY_AFTER_NAMESPACE();

#endif
