// SPDX-License-Identifier: BSD-3-Clause
#include "byway/comm/recording.h"

#include <sys/stat.h>

#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/comm/communicator.h"
#include "byway/comm/communicator_state.h"

namespace byway {
namespace {

constexpr std::size_t kMostCalls = 1 << 20;

std::string folderOf(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return "";
  struct stat status {};
  if (::stat(text, &status) != 0 || !S_ISDIR(status.st_mode)) {
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}={} is no folder; make it first, on every host", variable, text));
  }
  return text;
}

}  // namespace

void readRecording(ChannelOptions& options) {
  if (const char* text = std::getenv("BYWAY_RECORDER")) {
    const std::string_view whole = text;
    const auto [end, status] =
        std::from_chars(whole.data(), whole.data() + whole.size(), options.recordedCalls);
    if (status != std::errc() || end != whole.data() + whole.size() ||
        options.recordedCalls > kMostCalls) {
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("BYWAY_RECORDER={} is not a number of calls from 0 to {}", whole,
                              kMostCalls));
    }
  }
  options.recorderFolder = folderOf("BYWAY_RECORDER_DIR");
  options.trace.folder = folderOf("BYWAY_TRACE");
}

std::string Communicator::recordedCalls() const {
  const auto channel = state_->open();
  return state_->engine->locked([&] { return channel->recordedCalls(); });
}

void Communicator::writeRecordedCalls(const std::string& path) const {
  writeRecords(path, recordedCalls());
}

}  // namespace byway
