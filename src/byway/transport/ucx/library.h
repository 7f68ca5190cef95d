// SPDX-License-Identifier: BSD-3-Clause
// The UCX library itself: which one was loaded, its settings, its log, a context and a worker.
// Private to ucx/.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <ucp/api/ucp.h>

namespace byway::ucx {

// Sends UCX's log to byway::log, once for the process.
void redirectLog();

// Throws Error{Unsupported} when the library at run time is older than the headers.
void checkVersion();

// The descriptors of this process; UCX makes its own without close-on-exec.
std::vector<int> openDescriptors();
// Sets close-on-exec on those that are open now and were not `before`. A descriptor that another
// thread opens meanwhile gets it too, unless it is a pipe, as made for a child.
void closeNewDescriptorsOnExec(const std::vector<int>& before);

// How many forks lie between this process and the one that loaded the library.
unsigned forks();

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
