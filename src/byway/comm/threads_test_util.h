// SPDX-License-Identifier: BSD-3-Clause
// Ranks as threads: runs one function on every rank of a communicator over inproc.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "byway/comm/communicator.h"
#include "byway/transport/inproc/inproc_wire.h"

namespace byway {

struct ThreadRanks {
  std::shared_ptr<InprocFabric> fabric = std::make_shared<InprocFabric>();
  HashStore store;
  static constexpr Seconds kTimeout = 30;  // a hang ends in an error that says who waits for whom

  // A failure or an escaping exception on any rank fails the test and names the rank.
  void run(int n, CommunicatorOptions options, const std::function<void(Communicator&)>& fn) {
    options.timeout = std::min(options.timeout, kTimeout);
    std::vector<int> ranks;
    for (int r = 0; r < n; ++r) ranks.push_back(r);
    each(n, [&](int rank) {
      auto comm =
          Communicator::create(Endpoint::inproc(fabric), store, "test", ranks, rank, options);
      fn(*comm);
    });
  }

  static void each(int n, const std::function<void(int)>& fn) {
    std::vector<std::thread> threads;
    std::vector<std::string> failures(static_cast<std::size_t>(n));
    for (int r = 0; r < n; ++r) {
      threads.emplace_back([&, r] {
        try {
          fn(r);
        } catch (const std::exception& e) {
          failures[static_cast<std::size_t>(r)] = e.what();
        }
      });
    }
    for (auto& thread : threads) thread.join();
    for (int r = 0; r < n; ++r) {
      EXPECT_EQ(failures[static_cast<std::size_t>(r)], "") << "rank " << r;
    }
  }
};

// The Error that `fn` throws; fails the test when it throws none.
inline Error errorOf(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return {ErrorCode::Internal, "none"};
}

template <typename T>
Region regionOf(std::vector<T>& v) {
  return {v.data(), v.size() * sizeof(T)};
}

}  // namespace byway
