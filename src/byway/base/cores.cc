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

int currentCore() { return sched_getcpu(); }

bool moveToAnotherCore(std::span<const int> taken) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  const int mine = currentCore();
  if (mine < 0 || mine >= CPU_SETSIZE) return false;
  cpu_set_t others = allowed;
  CPU_CLR(mine, &others);
  if (CPU_COUNT(&others) == 0) return false;
  cpu_set_t free = others;
  for (const int core : taken) {
    if (core >= 0 && core < CPU_SETSIZE) CPU_CLR(core, &free);
  }
  const cpu_set_t& goal = CPU_COUNT(&free) > 0 ? free : others;
  if (sched_setaffinity(0, sizeof goal, &goal) != 0) return false;
  return sched_setaffinity(0, sizeof allowed, &allowed) == 0;
}

}  // namespace byway
