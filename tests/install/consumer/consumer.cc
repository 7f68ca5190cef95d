// SPDX-License-Identifier: BSD-3-Clause
// A program of another project: one rank, through the installed library and UCX.
#include <cstdio>

#include "byway/comm/communicator.h"

int main() {
  byway::HashStore store;
  const auto communicator =
      byway::Communicator::create(byway::Endpoint::process(), store, "consumer", {0}, 0);
  float value = 3;
  const byway::Region region(&value, sizeof value);
  communicator->allReduce(region, region, 1, byway::DType::Float32).wait();
  std::printf("%d of %d: %g\n", communicator->rank(), communicator->size(), value);
}
