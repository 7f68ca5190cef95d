// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mutex>

#include "byway/comm/communicator.h"
#include "byway/comm/plan_cache.h"
#include "byway/comm/prepared.h"
#include "byway/executor/engine.h"

namespace byway {

// Shared with what runs when a call is over, which may be later than the Communicator.
struct CommunicatorState : std::enable_shared_from_this<CommunicatorState> {
  CommunicatorState(std::shared_ptr<Endpoint> e, Topology topology, CommunicatorOptions o,
                    double mappedBytes, bool coresForAll)
      : endpoint(std::move(e)),
        engine(endpoint->engine()),
        options(std::move(o)),
        plans(std::move(topology), options.route, options.stageQuota, mappedBytes, coresForAll) {}

  // Throws Error{Broken} after destroy().
  std::shared_ptr<Channel> open() {
    const std::scoped_lock lock(mutex);
    if (channel == nullptr) {
      throw Error(ErrorCode::Broken, "the communicator was destroyed", rank);
    }
    return channel;
  }

  std::shared_ptr<Endpoint> endpoint;
  std::shared_ptr<Engine> engine;
  CommunicatorOptions options;
  PlanCache plans;
  PreparedCalls prepared;
  int rank = 0;
  int size = 1;
  std::mutex mutex;
  std::shared_ptr<Channel> channel;
};

}  // namespace byway
