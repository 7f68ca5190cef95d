// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/errors.h"

#include <c10/util/Exception.h>

namespace byway::pytorch {

void throwToTorch(const Error& error, const std::string& context) {
  // Programs that know Gloo look for these two words.
  const std::string what =
      (error.code() == ErrorCode::Timeout ? "Timed out waiting: " : "") + std::string(error.what());
  const std::string text = context.empty() ? what : context + ": " + what;
  switch (error.code()) {
    case ErrorCode::InvalidArgument:
      C10_THROW_ERROR(ValueError, text);
    case ErrorCode::Unsupported:
      C10_THROW_ERROR(NotImplementedError, text);
    case ErrorCode::Mismatch:
    case ErrorCode::Timeout:
    case ErrorCode::PeerLost:
    case ErrorCode::Aborted:
    case ErrorCode::Broken:
    case ErrorCode::Resource:
    case ErrorCode::Internal:
      break;
  }
  C10_THROW_ERROR(DistBackendError, text + " [" + toString(error.code()) + "]");
}

std::exception_ptr toTorch(const Error& error, const std::string& context) {
  try {
    throwToTorch(error, context);
  } catch (...) {
    return std::current_exception();
  }
}

void invalid(const std::string& what) { throw Error(ErrorCode::InvalidArgument, what); }

}  // namespace byway::pytorch
