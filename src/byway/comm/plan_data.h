// SPDX-License-Identifier: BSD-3-Clause
// Plans as data, so that one rank can make them for all.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "byway/base/error.h"
#include "byway/planner/planner.h"

namespace byway {

inline constexpr std::size_t kMostPlanBytes = std::size_t{32} << 20;

// The schedules and predicted times; which candidates were considered is left out.
std::vector<std::byte> encodePlan(const Plan& plan);
std::vector<std::byte> encodeRefusal(const Error& error);
// Verified, and for what was asked. Throws what encodeRefusal() got, or Error{InvalidArgument}.
Plan decodePlan(std::span<const std::byte> bytes, const PlanRequest& request);

}  // namespace byway
