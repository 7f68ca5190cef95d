// SPDX-License-Identifier: BSD-3-Clause
#include "byway/base/copy.h"

#include <vector>

#include <gtest/gtest.h>

namespace byway {
namespace {

using Copies = testing::TestWithParam<void (*)(void*, const void*, std::size_t)>;

// copy() leaves what is below 4 KB to the library.
TEST_P(Copies, CopiesEveryByteAndNoOther) {
  constexpr std::size_t kMost = 4300, kMargin = 70;
  std::vector<unsigned char> from(kMost + kMargin);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 7 + 1);
  for (std::size_t offset = 0; offset < kMargin; ++offset) {
    for (const std::size_t bytes :
         {0UL, 1UL, 63UL, 64UL, 65UL, 128UL, 200UL, 4095UL, 4096UL, 4097UL, kMost}) {
      std::vector<unsigned char> to(kMost + 2 * kMargin, 0);
      GetParam()(to.data() + offset, from.data() + offset / 2, bytes);
      for (std::size_t i = 0; i < to.size(); ++i) {
        const bool inside = i >= offset && i < offset + bytes;
        ASSERT_EQ(to[i], inside ? from[i - offset + offset / 2] : 0)
            << "byte " << i << ", offset " << offset << ", " << bytes << " bytes";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Base, Copies, testing::Values(&copy, &streamCopy));

}  // namespace
}  // namespace byway
