// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/trace_log.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>

#include <fmt/format.h>

#include "byway/base/log.h"
#include "byway/executor/recorder.h"
#include "byway/schedule/json_reader.h"

namespace byway {
namespace {

constexpr std::size_t kFlushBytes = std::size_t{1} << 20;

double secondsOf(clockid_t id) {
  timespec time{};
  ::clock_gettime(id, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Monotonic clocks of one boot are the same clock.
std::string bootId() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

}  // namespace

TraceLog::TraceLog(const TraceOptions& options, std::uint64_t communicator, int rank, int ranks)
    : path_(fmt::format("{}/trace-{}-{}-{:016x}.jsonl", options.folder, options.process, ::getpid(),
                        communicator)),
      pid_(::getpid()) {
  line(fmt::format(
      R"({{"byway": "trace", "version": 1, "communicator": "{:016x}", "name": {}, "rank": {}, )"
      R"("ranks": {}, "process": {}, "pid": {}, "boot": {}, "realtime_s": {:.6f}}})",
      communicator, jsonQuoted(options.name), rank, ranks, options.process, pid_,
      jsonQuoted(bootId()), secondsOf(CLOCK_REALTIME) - secondsOf(CLOCK_MONOTONIC)));
}

TraceLog::~TraceLog() { flush(); }

void TraceLog::add(const CallRecord& r, std::string_view what) {
  line(fmt::format(
      R"({{"k": "call", "seq": {}, "call": {}, "route": {}, "plan": "{:016x}", "bytes": {}, )"
      R"("created": {:.9f}, "started": {:.9f}, "ended": {:.9f}, "state": "{}"}})",
      r.sequence, jsonQuoted(what), jsonQuoted(r.route.data()), r.stamp[3], r.bytes, r.created,
      r.started, r.ended, toString(r.state)));
}

void TraceLog::add(const Transfer& t) {
  line(fmt::format(
      R"({{"k": "{}", "seq": {}, "id": {}, "tag": {}, "peer": {}, "bytes": {}, "phase": {}, )"
      R"("round": {}, "block": {}, "share": {}, "pieces": {}, "issued": {:.9f}, "done": {:.9f}}})",
      t.sends ? "send" : "recv", t.sequence, t.id, t.tag, t.peer, t.bytes, t.phase, t.round,
      t.block, t.share, t.pieces, t.issued, t.done));
}

void TraceLog::add(const Step& s) {
  line(fmt::format(
      R"({{"k": "{}", "seq": {}, "id": {}, "inputs": {}, "bytes": {}, "phase": {}, "round": {}, )"
      R"("start": {:.9f}, "end": {:.9f}}})",
      s.reduces ? "reduce" : "copy", s.sequence, s.id, s.inputs, s.bytes, s.phase, s.round, s.start,
      s.end));
}

void TraceLog::line(std::string_view text) {
  text_ += text;
  text_ += '\n';
  if (text_.size() >= kFlushBytes) flush();
}

void TraceLog::flush() {
  if (failed_ || text_.empty() || ::getpid() != pid_) return;
  std::FILE* file = std::fopen(path_.c_str(), "ae");
  const bool written =
      file != nullptr && std::fwrite(text_.data(), 1, text_.size(), file) == text_.size();
  const int error = errno;
  if (file != nullptr) std::fclose(file);
  text_.clear();
  if (written) return;
  failed_ = true;
  log(LogLevel::Warning,
      fmt::format("byway: cannot write the trace {}: {}", path_, std::strerror(error)));
}

}  // namespace byway
