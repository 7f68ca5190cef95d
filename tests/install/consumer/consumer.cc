// SPDX-License-Identifier: BSD-3-Clause
// A program of another project: uses the installed headers and library only.
#include <cstdio>

#include "byway/base/error.h"
#include "byway/base/types.h"
#if __has_include("byway/comm/communicator.h")
#include "byway/comm/communicator.h"
#endif

int main() {
  const byway::Error error(byway::ErrorCode::Timeout, "late", 3, 7);
  std::printf("%s %zu\n", byway::toString(error.code()), byway::sizeOf(byway::DType::BFloat16));
}
