// SPDX-License-Identifier: BSD-3-Clause
// The UCX library itself: which one was loaded, its settings, its log, a context and a worker.
// Private to ucx/.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <string>
#include <vector>

namespace byway::ucx {

// Sends UCX's log to byway::log, once for the process.
void redirectLog();

// Throws Error{Unsupported} when the library at run time is older than the headers.
void checkVersion();

class Worker {
 public:
  // Throws Error{Resource, Unsupported}.
  Worker();
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  ucp_context_h context() const { return context_; }
  ucp_worker_h get() const { return worker_; }
  int events() const { return events_; }
  std::vector<std::byte> address() const;

 private:
  void start();

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int events_ = -1;
};

// Throws Error{Resource} naming what failed.
void check(ucs_status_t status, const char* what);

}  // namespace byway::ucx
