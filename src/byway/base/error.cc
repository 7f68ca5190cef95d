// SPDX-License-Identifier: BSD-3-Clause
#include "byway/base/error.h"

namespace byway {

const char* toString(ErrorCode code) {
  switch (code) {
#define BYWAY_X(name, advice) \
  case ErrorCode::name:       \
    return #name;
    BYWAY_ERROR_CODES(BYWAY_X)
#undef BYWAY_X
  }
  return "?";
}

void internalError(const char* file, int line, const char* condition) {
  std::string what = "byway: internal error at ";
  what.append(file).append(":").append(std::to_string(line)).append(": ").append(condition);
  what.append(" does not hold; please report it");
  throw Error(ErrorCode::Internal, what);
}

}  // namespace byway
