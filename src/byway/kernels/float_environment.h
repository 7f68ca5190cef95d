// SPDX-License-Identifier: BSD-3-Clause
// The calling thread's rounding and flush-to-zero settings would change a reduction's bits, and any
// thread may run one: framework threads that flush subnormals, our own that do not.
#pragma once

#include <atomic>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace byway {

// Round to nearest, keep subnormals, trap nothing, while it lives. Free where that holds already.
// The fences keep the compiler from moving arithmetic on memory out of the scope.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;
#if defined(__SSE2__)
  DefaultFloatEnvironment() : saved_(_mm_getcsr()) {
    if (changed()) _mm_setcsr(kDefault);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~DefaultFloatEnvironment() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (changed()) _mm_setcsr(saved_);
  }

 private:
  static constexpr unsigned kDefault = 0x1f80;
  static constexpr unsigned kStatusFlags = 0x3f;
  bool changed() const { return (saved_ & ~kStatusFlags) != kDefault; }
  unsigned saved_;
#else
  DefaultFloatEnvironment() {}  // elsewhere the thread's settings are taken as they are
  ~DefaultFloatEnvironment() {}
#endif
};

}  // namespace byway
