// SPDX-License-Identifier: BSD-3-Clause
// A rank's part of a communicator's timeline, one JSON object a line, for `byway trace`
// (docs/recorder.md). Under the engine's lock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "byway/base/clock.h"

namespace byway {

struct CallRecord;

struct TraceOptions {
  std::string folder;  // "": no trace
  std::string name;    // of the communicator
  int process = 0;     // this process's rank in the job
};

class TraceLog {
 public:
  TraceLog(const TraceOptions& options, std::uint64_t communicator, int rank, int ranks);
  ~TraceLog();  // writes what is left, unless in a forked child
  TraceLog(const TraceLog&) = delete;
  TraceLog& operator=(const TraceLog&) = delete;

  struct Transfer {
    std::int64_t sequence = -1;  // -1: a send or receive by the caller, with a tag
    std::uint32_t id = 0;        // the same on both sides
    std::uint32_t tag = 0;
    bool sends = false;
    int peer = 0;
    std::uint64_t bytes = 0;
    int phase = -1, round = 0;
    std::int64_t block = -1, share = -1;  // the first piece's
    std::size_t pieces = 0;
    Seconds issued = 0, done = 0;
  };
  struct Step {
    std::int64_t sequence = 0;
    bool reduces = false;
    std::size_t inputs = 0;
    std::uint64_t bytes = 0;  // written
    int phase = -1, round = 0;
    std::uint32_t id = 0;
    Seconds start = 0, end = 0;
  };
  void add(const CallRecord& call, std::string_view what);
  void add(const Transfer& transfer);
  void add(const Step& step);

 private:
  void line(std::string_view text);
  void flush();

  std::string path_;
  std::string text_;
  bool failed_ = false;
  int pid_;
};

}  // namespace byway
