// SPDX-License-Identifier: BSD-3-Clause
// Counts that ranks tell each other through the library itself.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "byway/comm/call.h"
#include "byway/comm/communicator.h"

namespace byway {
namespace {

using Counts = std::vector<std::uint64_t>;

struct Exchange {
  Counts row, rows;  // this rank's, and all ranks' one after another
};

Region regionOf(Counts& counts) { return {counts.data(), counts.size() * sizeof(std::uint64_t)}; }

// All ranks' rows are in `exchange` once the Work is done.
Work gatherRows(CommunicatorState& state, const std::shared_ptr<Exchange>& exchange,
                const CallOptions& options) {
  exchange->rows.resize(exchange->row.size() * static_cast<std::size_t>(state.size));
  CallGroup group = everybody(state);
  group.count = exchange->row.size();
  CallOptions own;
  own.timeout = options.timeout;
  own.keepAlive = exchange;
  return submitCall(state, {Collective::AllGather, {std::move(group)}, DType::UInt64, {}, false, 1},
                    {regionOf(exchange->row), regionOf(exchange->rows)}, own);
}

// The call with the counts of all pairs. `own` has this rank's row and column.
Call completed(const CommunicatorState& state, Call own, const Counts& rows) {
  const auto n = static_cast<std::size_t>(state.size);
  const auto self = static_cast<std::size_t>(state.rank);
  Counts& counts = own.groups[0].counts;
  for (std::size_t r = 0; r < n; ++r) {
    if (counts[r * n + self] == rows[r * n + self]) continue;
    throw Error(ErrorCode::Mismatch,
                fmt::format("all-to-all: rank {} sends {} elements to rank {}, which expects {}", r,
                            rows[r * n + self], self, counts[r * n + self]));
  }
  counts = rows;
  own.ownCounts = false;
  return own;
}

}  // namespace

Work submitExchanged(CommunicatorState& state, const Call& call, const FusedArgs& mine,
                     const CallOptions& options) {
  OperationRequest request;
  checkOrRefuse(state, options, [&] { request = prepareCall(state, call, mine, options); });
  if (options.checkOnly) return {};
  const auto n = static_cast<std::ptrdiff_t>(state.size);
  const auto first = call.groups[0].counts.begin() + state.rank * n;
  auto exchange = std::make_shared<Exchange>();
  exchange->row.assign(first, first + n);
  const Work rows = gatherRows(state, exchange, options);
  const auto channel = state.open();
  const auto operation = state.engine->submit(*channel, OperationRequest(request));
  rows.whenDone([state = state.shared_from_this(), channel, operation, exchange, rows, call,
                 request = std::move(request)]() mutable {
    if (rows.error()) return;  // the communicator is broken, and this call with it
    try {
      planCall(*state, completed(*state, call, exchange->rows), request);
      state->engine->supply(*channel, *operation, std::move(request));
    } catch (const Error& error) {
      state->engine->fail(*channel,
                          Error(error.code(), error.what(), state->rank, operation->sequence()));
    }
  });
  return {state.engine, operation};
}

std::vector<std::uint64_t> Communicator::exchangeCounts(const std::vector<std::uint64_t>& row,
                                                        const CallOptions& options) {
  auto exchange = std::make_shared<Exchange>();
  exchange->row = row;
  gatherRows(*state_, exchange, options).wait();
  return std::move(exchange->rows);
}

}  // namespace byway
