// SPDX-License-Identifier: BSD-3-Clause
#include "byway/base/cores.h"

#include <sched.h>

namespace byway {

int coresHere() {
  static const int cores = [] {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  }();
  return cores;
}

}  // namespace byway
