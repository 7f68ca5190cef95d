// SPDX-License-Identifier: BSD-3-Clause
// Why a sanitizer's build skips tests in which processes of one host meet through UCX. Use:
//   if (const char* why = notWithSanitizers()) GTEST_SKIP() << why;
#pragma once

namespace byway {

inline const char* notWithSanitizers() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return "the sanitizers' process_vm_readv takes UCX's own reachability probe for a fault";
#else
  return nullptr;
#endif
}

// The same for tests whose threads end in a process that links UCX and has not started it.
inline const char* notWithThreadSanitizer() {
#if defined(__SANITIZE_THREAD__)
  return "UCX's hook of madvise asks ThreadSanitizer about a thread that it has let go";
#else
  return nullptr;
#endif
}

}  // namespace byway
