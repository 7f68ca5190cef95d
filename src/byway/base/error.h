// SPDX-License-Identifier: BSD-3-Clause
// The one exception of the library, and the code that says which kind of failure it is.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace byway {

// X(name, what the caller can do about it)
#define BYWAY_ERROR_CODES(X)                                                            \
  X(InvalidArgument, "correct the call; nothing was sent")                              \
  X(Mismatch, "make all ranks issue the same call")                                     \
  X(Timeout, "see which ranks are named; raise the deadline or find why they are late") \
  X(PeerLost, "build a new communicator of the survivors")                              \
  X(Aborted, "none: the communicator was aborted by its user")                          \
  X(Broken, "build a new communicator; this one failed earlier")                        \
  X(Resource, "free memory or raise the limit named in the message")                    \
  X(Unsupported, "use what docs/status.md lists")                                       \
  X(Internal, "report it: this is a fault of Byway")

enum class ErrorCode : std::uint8_t {
#define BYWAY_X(name, advice) name,
  BYWAY_ERROR_CODES(BYWAY_X)
#undef BYWAY_X
};

const char* toString(ErrorCode code);

// Every failure a caller can meet. `rank` is the rank that raises (or -1 where none is known yet),
// `sequence` the number of the call on its communicator (or -1 outside a call).
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, int rank = -1, std::int64_t sequence = -1)
      : std::runtime_error(message), code_(code), rank_(rank), sequence_(sequence) {}

  ErrorCode code() const { return code_; }
  int rank() const { return rank_; }
  std::int64_t sequence() const { return sequence_; }

 private:
  ErrorCode code_;
  int rank_;
  std::int64_t sequence_;
};

// For our own bugs only: a condition that no input can make false. Throws Error{Internal}.
[[noreturn]] void internalError(const char* file, int line, const char* condition);
#define BYWAY_ASSERT(condition) \
  ((condition) ? void(0) : ::byway::internalError(__FILE__, __LINE__, #condition))

}  // namespace byway
