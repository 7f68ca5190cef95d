// SPDX-License-Identifier: BSD-3-Clause
// The flight recorder: the last calls of a communicator, what became of them and when. Under the
// engine's lock; memory is taken at the first call alone, and for a failure's text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "byway/base/clock.h"
#include "byway/base/error.h"
#include "byway/transport/wire.h"

namespace byway {

enum class CallState : std::uint8_t { Waiting, UnderWay, Completed, Failed };
const char* toString(CallState state);

struct CallRecord {
  static constexpr std::size_t kRouteBytes = 32;  // longer text is cut
  std::uint64_t number = 0;                       // of the call on its communicator and rank
  std::int64_t sequence = -1;                     // of a collective; -1: sends and receives
  CallState state = CallState::Waiting;
  Seconds created = 0, started = -1, ended = -1;  // on the engine's clock; -1: not yet
  std::uint64_t bytes = 0;                        // that this rank reads, or sends and receives
  // A collective: its fingerprint and its plan's name.
  Stamp stamp{};
  std::array<char, kRouteBytes> route{};
  // Sends and receives: how many, and the first of them.
  std::uint32_t parts = 0;
  bool sends = false;
  int peer = -1;
  std::uint32_t tag = 0;
  ErrorCode code = ErrorCode::Internal;  // of a failed one
  std::string error;
  void clear();  // but for memory
};

template <std::size_t N>
void copyText(std::string_view from, std::array<char, N>& to) {
  const std::size_t bytes = from.size() < N ? from.size() : N - 1;
  from.copy(to.data(), bytes);
  to[bytes] = '\0';
}

class Recorder {
 public:
  explicit Recorder(std::size_t capacity) : capacity_(capacity) {}

  // The next call's; its number is set. Null with a capacity of 0.
  CallRecord* add();
  // Null when it was overwritten.
  CallRecord* find(std::uint64_t number);
  std::uint64_t count() const { return count_; }  // of all calls

  // One object, oldest call first.
  std::string toJson(std::uint64_t communicator, int rank, int ranks, Seconds now) const;

 private:
  std::size_t capacity_;
  std::uint64_t count_ = 0;
  std::size_t next_ = 0;  // of the ring, for the next call
  std::vector<CallRecord> ring_;
};

// Under another name, then renamed. Throws Error{InvalidArgument} that names the path.
void writeRecords(const std::string& path, std::string_view text);

}  // namespace byway
