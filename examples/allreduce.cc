// SPDX-License-Identifier: BSD-3-Clause
// Sums an array over all ranks, in place:  byway run -n 4 allreduce
#include <cstdio>
#include <vector>

#include "byway/comm/communicator.h"

int main() try {
  const auto world = byway::Communicator::world();
  std::vector<float> values(1000, static_cast<float>(world->rank() + 1));
  const byway::Region region(values.data(), values.size() * sizeof(float));

  const byway::Work work =
      world->allReduce(region, region, values.size(), byway::DType::Float32, byway::ReduceOp::Sum);
  work.wait();  // throws the call's error, if it failed

  std::printf("rank %d of %d: %g\n", world->rank(), world->size(), values.back());
} catch (const byway::Error& error) {
  std::fprintf(stderr, "%s: %s\n", byway::toString(error.code()), error.what());
  return 1;
}
