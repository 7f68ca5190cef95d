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
  throw Error(ErrorCode::Internal, std::string("byway: internal error at ") + file + ":" +
                                       std::to_string(line) + ": " + condition +
                                       " does not hold; please report it");
}

}  // namespace byway
