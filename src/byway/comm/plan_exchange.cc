// SPDX-License-Identifier: BSD-3-Clause
// One rank makes a plan, and all others get it as data.
#include <utility>

#include "byway/comm/call.h"
#include "byway/comm/plan_data.h"

namespace byway {
namespace {

constexpr int kMaker = 0;

struct Parcel {
  std::uint64_t length = 0;
  std::vector<std::byte> data;
};

// From kMaker to all ranks, by the direct template: what brings plans needs no plan that is
// brought.
Call delivery(const CommunicatorState& state, std::uint64_t count, DType dtype) {
  CallGroup group = everybody(state);
  group.count = count;
  group.root = kMaker;
  return {Collective::Broadcast, {std::move(group)}, dtype, {}, false, 1, true};
}

FusedArgs argsOf(const CommunicatorState& state, void* data, std::size_t bytes) {
  const Region region(data, bytes);
  return {state.rank == kMaker ? region : Region(), region};
}

std::shared_ptr<const Plan> made(const CommunicatorState& state, const ComingPlan& coming) {
  return std::make_shared<const Plan>(plan(coming.request(), state.plans.topology()));
}

// Where rank 0 has no link to some rank, every rank makes the plan for itself.
bool canDeliver(CommunicatorState& state) {
  try {
    OperationRequest request;
    planCall(state, delivery(state, 1, DType::UInt8), request);
    return request.schedule->isTemplate();
  } catch (const Error&) {
    return false;
  }
}

void settleHere(const CommunicatorState& state, ComingPlan& coming) {
  try {
    coming.settle(made(state, coming), nullptr);
  } catch (...) {
    coming.settle(nullptr, std::current_exception());
  }
}

// The maker keeps what it sends; the others verify what they get.
void settleFrom(const CommunicatorState& state, const Parcel& parcel, ComingPlan& coming,
                const std::shared_ptr<const Plan>& own) {
  try {
    coming.settle(state.rank == kMaker && own
                      ? own
                      : std::make_shared<const Plan>(decodePlan(parcel.data, coming.request())),
                  nullptr);
  } catch (...) {
    coming.settle(nullptr, std::current_exception());
  }
}

// The length has come: the operation that takes the data can begin.
void supplyData(CommunicatorState& state, Channel& channel, CollectiveOperation& data,
                const std::shared_ptr<Parcel>& parcel, const CallOptions& options) {
  try {
    if (parcel->length > kMostPlanBytes) {
      throw Error(ErrorCode::Internal, "a plan is too long to be sent");
    }
    parcel->data.resize(parcel->length);
    const Call call = delivery(state, parcel->length, DType::UInt8);
    OperationRequest request =
        prepareCall(state, call, argsOf(state, parcel->data.data(), parcel->data.size()), options);
    planCall(state, call, request);
    state.engine->supply(channel, data, std::move(request));
  } catch (const Error& error) {
    state.engine->fail(channel, Error(error.code(), error.what(), state.rank, data.sequence()));
  }
}

}  // namespace

void bringPlan(CommunicatorState& state, const std::shared_ptr<ComingPlan>& coming,
               const CallOptions& options) {
  if (!canDeliver(state)) return settleHere(state, *coming);
  auto parcel = std::make_shared<Parcel>();
  std::shared_ptr<const Plan> own;
  if (state.rank == kMaker) {
    try {
      own = made(state, *coming);
      parcel->data = encodePlan(*own);
    } catch (const Error& error) {
      parcel->data = encodeRefusal(error);
    }
    parcel->length = parcel->data.size();
  }
  CallOptions mine;
  mine.timeout = options.timeout;
  mine.keepAlive = parcel;
  const auto channel = state.open();
  const Work length = submitCall(state, delivery(state, 1, DType::UInt64),
                                 argsOf(state, &parcel->length, sizeof parcel->length), mine);
  const auto data = state.engine->submit(
      *channel, prepareCall(state, delivery(state, 0, DType::UInt8), {}, mine));
  const auto shared = state.shared_from_this();
  length.whenDone([shared, channel, data, parcel, mine, length] {
    if (!length.error()) supplyData(*shared, *channel, *data, parcel, mine);
  });
  state.engine->whenDone(*data, [shared, data, parcel, coming, own] {
    if (data->error())
      coming->settle(nullptr, data->error());
    else
      settleFrom(*shared, *parcel, *coming, own);
  });
}

}  // namespace byway
