// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "byway/executor/fingerprint.h"
#include "byway/schedule/json_reader.h"

namespace byway {
namespace {

std::string callText(const CallRecord& r) {
  if (r.sequence >= 0) return describe(r.stamp);
  if (r.parts != 1) return fmt::format("a batch of {} sends and receives", r.parts);
  const std::string peer = r.peer < 0 ? "any rank" : fmt::format("rank {}", r.peer);
  return fmt::format("{} {}, tag {}", r.sends ? "send to" : "recv from", peer, r.tag);
}

std::string timeText(Seconds time) { return time < 0 ? "null" : fmt::format("{:.9f}", time); }

std::string toJson(const CallRecord& r) {
  std::string out = fmt::format(
      R"({{"number": {}, "sequence": {}, "call": {}, "bytes": {}, "state": "{}", )"
      R"("created_s": {}, "started_s": {}, "ended_s": {})",
      r.number, r.sequence < 0 ? "null" : std::to_string(r.sequence), jsonQuoted(callText(r)),
      r.bytes, toString(r.state), timeText(r.created), timeText(r.started), timeText(r.ended));
  if (r.sequence >= 0) {
    out +=
        fmt::format(R"(, "plan": "{:016x}", "route": {})", r.stamp[3], jsonQuoted(r.route.data()));
  }
  if (r.state == CallState::Failed) {
    out += fmt::format(R"(, "code": "{}", "error": {})", toString(r.code), jsonQuoted(r.error));
  }
  return out + "}";
}

}  // namespace

const char* toString(CallState state) {
  switch (state) {
    case CallState::Waiting:
      return "waiting";
    case CallState::UnderWay:
      return "under way";
    case CallState::Completed:
      return "completed";
    case CallState::Failed:
      return "failed";
  }
  return "";
}

void CallRecord::clear() {
  sequence = -1;
  state = CallState::Waiting;
  created = 0;
  started = ended = -1;
  bytes = 0;
  stamp = {};
  route[0] = '\0';
  parts = tag = 0;
  sends = false;
  peer = -1;
  code = ErrorCode::Internal;
  error.clear();
}

CallRecord* Recorder::add() {
  const std::uint64_t number = count_++;
  if (capacity_ == 0) return nullptr;
  if (ring_.empty()) ring_.resize(capacity_);
  CallRecord& record = ring_[next_];
  if (++next_ == capacity_) next_ = 0;
  record.clear();
  record.number = number;
  return &record;
}

CallRecord* Recorder::find(std::uint64_t number) {
  if (ring_.empty() || number >= count_ || count_ - number > capacity_) return nullptr;
  const std::uint64_t back = count_ - number;
  return &ring_[next_ >= back ? next_ - back : next_ + capacity_ - back];
}

std::string Recorder::toJson(std::uint64_t communicator, int rank, int ranks, Seconds now) const {
  std::string out = fmt::format(
      "{{\"byway\": \"calls\", \"version\": 1, \"communicator\": \"{:016x}\", \"rank\": {},\n"
      " \"ranks\": {}, \"pid\": {}, \"now_s\": {}, \"calls_made\": {},\n \"calls\": [",
      communicator, rank, ranks, ::getpid(), timeText(now), count_);
  const std::uint64_t kept = ring_.empty() ? 0 : std::min<std::uint64_t>(count_, capacity_);
  for (std::uint64_t number = count_ - kept; number < count_; ++number) {
    out += number == count_ - kept ? "\n  " : ",\n  ";
    out += byway::toJson(ring_[number % capacity_]);
  }
  return out + "\n ]}\n";
}

void writeRecords(const std::string& path, std::string_view text) {
  const std::string draft = fmt::format("{}.{}.part", path, ::getpid());
  std::FILE* const file = std::fopen(draft.c_str(), "we");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (written && std::rename(draft.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  std::remove(draft.c_str());
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("cannot write {}: {}", path, std::strerror(error)));
}

}  // namespace byway
