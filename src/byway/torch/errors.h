// SPDX-License-Identifier: BSD-3-Clause
// Byway's errors as torch's, which Python sees as ValueError, NotImplementedError and
// DistBackendError.
#pragma once

#include <exception>
#include <string>

#include "byway/base/error.h"

namespace byway::pytorch {

// InvalidArgument: c10::ValueError. Unsupported: c10::NotImplementedError. Else
// c10::DistBackendError. `context` stands before the message.
std::exception_ptr toTorch(const Error& error, const std::string& context);
[[noreturn]] void throwToTorch(const Error& error, const std::string& context);

// Runs fn() outside a call (creation, abort, shutdown) and translates what it throws.
template <typename Fn>
auto translated(const std::string& context, const Fn& fn) -> decltype(fn()) {
  try {
    return fn();
  } catch (const Error& error) {
    throwToTorch(error, context);
  }
}

[[noreturn]] void invalid(const std::string& what);  // throws Error{InvalidArgument}

}  // namespace byway::pytorch
