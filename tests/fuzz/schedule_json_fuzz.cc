// SPDX-License-Identifier: BSD-3-Clause
// Schedule files: whatever is read is written and read back the same, and the verifier, and where
// it agrees bind, take it without harm.
#include "byway/schedule/bind.h"
#include "byway/schedule/json.h"
#include "byway/schedule/verify.h"
#include "fuzz_target.h"

namespace byway {
namespace {

constexpr std::size_t kMostOperations = 400;  // of schedules that are verified: it takes time
constexpr const char* kFile = "schedule.json";

void bindAll(const VerifiedSchedule& verified) {
  const Schedule& schedule = verified.schedule();
  for (const std::uint64_t count : {0u, 1u, 1000u}) {
    const std::vector<std::uint64_t> counts(schedule.shape.blocks.size(), count);
    for (int rank = 0; rank < schedule.shape.ranks; ++rank) {
      bind(verified, rank, {counts, {}, {}}, 2, 4);
    }
  }
}

void examine(Schedule schedule) {
  if (schedule.transfers.size() + schedule.steps.size() + schedule.pieces.size() >
      kMostOperations) {
    return;
  }
  const bool sound = violations(schedule).empty();
  try {
    bindAll(*verify(std::move(schedule)));
    fuzz::require(sound, "verify refuses what has violations");
  } catch (const Error& error) {
    fuzz::require(!sound || error.code() == ErrorCode::InvalidArgument ||
                      error.code() == ErrorCode::Unsupported,
                  "verify takes what has no violations");
  }
}

}  // namespace
}  // namespace byway

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace byway;
  try {
    Schedule schedule = scheduleFromJson(fuzz::textOf(data, size), kFile);
    const std::string text = toJson(schedule);
    const Schedule again = scheduleFromJson(text, kFile);
    fuzz::require(hashOf(again) == hashOf(schedule), "a schedule survives its file");
    fuzz::require(toJson(again) == text, "equal schedules have equal files");
    examine(std::move(schedule));
  } catch (const Error& error) {
    fuzz::requireGoodRefusal(error, kFile);
  }
  return 0;
}
