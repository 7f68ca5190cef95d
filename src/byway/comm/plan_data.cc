// SPDX-License-Identifier: BSD-3-Clause
#include "byway/comm/plan_data.h"

#include <cstring>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "byway/schedule/json.h"

namespace byway {
namespace {

// In front of the texts of the two schedules, or of a refusal (errorCode >= 0, in `chosenBytes`).
struct Head {
  std::int32_t errorCode = -1;
  std::int32_t reserved = 0;
  double predicted = 0, directPredicted = 0;
  std::uint64_t chosenBytes = 0, directBytes = 0;  // directBytes 0: it is the chosen one
};

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::InvalidArgument, "a plan sent by another rank " + why);
}

std::vector<std::byte> joined(const Head& head, std::string_view first, std::string_view second) {
  std::vector<std::byte> bytes(sizeof head + first.size() + second.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  if (!first.empty()) std::memcpy(bytes.data() + sizeof head, first.data(), first.size());
  if (!second.empty()) {
    std::memcpy(bytes.data() + sizeof head + first.size(), second.data(), second.size());
  }
  return bytes;
}

std::shared_ptr<const VerifiedSchedule> read(std::string_view text, const PlanRequest& request) {
  Schedule schedule = scheduleFromJson(text, "a plan sent by another rank");
  const Shape& shape = schedule.shape;
  if (shape.collective != request.collective || shape.ranks != request.ranks ||
      shape.groups != request.groups || shape.blocks.size() != request.blockBytes.size()) {
    refuse("is for another call");
  }
  return verify(std::move(schedule));
}

}  // namespace

std::vector<std::byte> encodePlan(const Plan& plan) {
  const std::string chosen = toJson(plan.chosen->schedule());
  const std::string direct = plan.relayed() ? toJson(plan.direct->schedule()) : std::string();
  const Head head{-1, 0, plan.predicted, plan.directPredicted, chosen.size(), direct.size()};
  return joined(head, chosen, direct);
}

std::vector<std::byte> encodeRefusal(const Error& error) {
  const std::string_view what = error.what();
  return joined({static_cast<std::int32_t>(error.code()), 0, 0, 0, what.size(), 0}, what, {});
}

Plan decodePlan(std::span<const std::byte> bytes, const PlanRequest& request) {
  Head head;
  if (bytes.size() < sizeof head) refuse(fmt::format("has {} bytes", bytes.size()));
  std::memcpy(&head, bytes.data(), sizeof head);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + sizeof head,
                              bytes.size() - sizeof head);
  if (head.chosenBytes > text.size() || head.directBytes != text.size() - head.chosenBytes) {
    refuse("has parts that do not fill it");
  }
  const std::string_view chosen = text.substr(0, head.chosenBytes);
  if (head.errorCode > static_cast<std::int32_t>(ErrorCode::Internal)) refuse("has no known error");
  if (head.errorCode >= 0) {
    throw Error(static_cast<ErrorCode>(head.errorCode), std::string(chosen));
  }
  Plan plan;
  plan.predicted = head.predicted;
  plan.directPredicted = head.directPredicted;
  plan.chosen = read(chosen, request);
  plan.direct = head.directBytes == 0 ? plan.chosen : read(text.substr(head.chosenBytes), request);
  return plan;
}

}  // namespace byway
