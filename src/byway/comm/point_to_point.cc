// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include <fmt/format.h>

#include "byway/comm/call.h"
#include "byway/comm/communicator.h"

namespace byway {
namespace {

constexpr std::uint32_t kTags = std::uint32_t{1} << 31;

PointToPoint checked(const CommunicatorState& state, const SendOrRecv& part, std::size_t index) {
  const bool sends = part.kind == SendOrRecv::Kind::Send;
  const bool any = part.peer == kFromAnyRank && !sends;
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} {}: {}", sends ? "send" : "recv", index, what), state.rank);
  };
  if (!any && (part.peer < 0 || part.peer >= state.size)) {
    refuse(fmt::format("rank {} is not one of {}", part.peer, state.size));
  }
  if (part.tag >= kTags) refuse(fmt::format("tag {} is not below {}", part.tag, kTags));
  if (sizeOf(part.dtype) == 0) refuse(fmt::format("{} is no dtype", static_cast<int>(part.dtype)));
  for (const Buffer& buffer : part.region.parts()) {
    if (buffer.bytes % sizeOf(part.dtype) != 0) {
      refuse(fmt::format("a part of {} bytes is no multiple of {}", buffer.bytes,
                         toString(part.dtype)));
    }
    if (buffer.bytes > 0 && buffer.address == nullptr && buffer.kind != MemoryKind::Phantom) {
      refuse(fmt::format("a part of {} bytes is at a null address", buffer.bytes));
    }
  }
  return {sends, any ? kAnySource : part.peer, part.tag, part.dtype, Segments(part.region.parts())};
}

}  // namespace

// A mistake here concerns nobody else: no number is taken and no rank is told.
Work Communicator::batch(std::span<const SendOrRecv> parts, const CallOptions& options) {
  const auto channel = state_->open();
  PointToPointRequest request;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    request.transfers.push_back(checked(*state_, parts[i], i));
  }
  request.timeout = options.timeout.value_or(state_->options.timeout);
  if (!(request.timeout >= 0)) {
    throw Error(ErrorCode::InvalidArgument, fmt::format("{} is no timeout", request.timeout),
                state_->rank);
  }
  if (options.checkOnly) return {};
  request.keepAlive = options.keepAlive;
  return {state_->engine, state_->engine->submit(*channel, std::move(request))};
}

Work Communicator::send(const Region& region, DType dtype, int peer, std::uint32_t tag,
                        const CallOptions& options) {
  const SendOrRecv part{SendOrRecv::Kind::Send, peer, region, dtype, tag};
  return batch({&part, 1}, options);
}

Work Communicator::recv(const Region& region, DType dtype, int peer, std::uint32_t tag,
                        const CallOptions& options) {
  const SendOrRecv part{SendOrRecv::Kind::Recv, peer, region, dtype, tag};
  return batch({&part, 1}, options);
}

}  // namespace byway
