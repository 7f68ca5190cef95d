// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

namespace byway {

// Cores that this process may run on; 1 where the system does not say. Asked once.
int coresHere();

// The core that the calling thread runs on at the moment; -1 where the system does not say.
int currentCore();

// Between looks at what another core may change.
inline void pauseCore() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A count that goes on at a rate of about a gigahertz or some, whatever the core does; 0 where
// there is none that costs little to ask.
inline std::uint64_t cycleCount() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return 0;
#endif
}

// Fetches the cache line of `address` from the cores that have it, for a write that is to come.
inline void prefetchForWrite(const void* address) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

// The same for a read.
inline void prefetchForRead(const void* address) { __builtin_prefetch(address); }

// Moves the calling thread to another core that it may run on, none of `taken` if there is such a
// one. It may run on the same cores afterwards as before. False: it has no other core.
bool moveToAnotherCore(std::span<const int> taken);

}  // namespace byway
