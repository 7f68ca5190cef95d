// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>

#include <array>
#include <cstring>
#include <fstream>

#include <gtest/gtest.h>

#include "byway/transport/ucx/ucx_wire.h"

namespace byway {
namespace {

// Whether a function of libc is in memory as it is in its file; there, addresses are offsets.
bool isUntouched(const char* name) {
  void* function = dlsym(RTLD_DEFAULT, name);
  Dl_info info{};
  if (function == nullptr || dladdr(function, &info) == 0) return false;
  std::array<char, 16> inFile{};
  std::ifstream in(info.dli_fname, std::ios::binary);
  in.seekg(static_cast<char*>(function) - static_cast<char*>(info.dli_fbase));
  in.read(inFile.data(), inFile.size());
  return in.good() && std::memcmp(inFile.data(), function, inFile.size()) == 0;
}

TEST(UcxLibrary, LeavesMemoryFunctionsAlone) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers replace these functions themselves";
#endif
  const auto wire = makeUcxWire();
  for (const char* name : {"mmap", "munmap", "madvise", "brk", "shmat", "shmdt"}) {
    EXPECT_TRUE(isUntouched(name)) << name;
  }
}

}  // namespace
}  // namespace byway
