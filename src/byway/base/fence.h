// SPDX-License-Identifier: BSD-3-Clause
// std::atomic_thread_fence. ThreadSanitizer knows no fences, and GCC refuses them with it: there it
// is a step of one atomic word of the process, which orders at least as much.
#pragma once

#include <atomic>

namespace byway {

inline void threadFence(std::memory_order order) {
#if defined(__SANITIZE_THREAD__)
  static std::atomic<unsigned> word{0};
  (void)order;
  word.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(order);
#endif
}

}  // namespace byway
