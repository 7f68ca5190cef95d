// SPDX-License-Identifier: BSD-3-Clause
// Microseconds of one blocking call on this host, all ranks in step:
//   byway run -n 2 -- flat_calls [route=NAME] [collective [bytes...]]
// Collectives: allreduce, inplace (the same in place), allgather, reducescatter, alltoall,
// broadcast, reduce, gather, scatter; sendrecv and stream for messages. Bytes are a rank's own
// part: the whole for allreduce, broadcast and reduce, a block for the others. Median and best of
// the batches, of the slowest rank. A route is taken in place of the planner's choice, "mapped
// exchange" say.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "byway/comm/communicator.h"

namespace {

using byway::DType;
using byway::Region;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr int kStream = 8;  // messages of a call of "stream", from rank 0 to rank 1, all under way

struct Buffers {
  std::vector<float> input, output;
};

// One call of a collective on `bytes` a rank.
std::function<void()> callOf(byway::Communicator& world, const std::string& name, std::size_t bytes,
                             Buffers& b) {
  const auto n = static_cast<std::size_t>(world.size());
  const std::size_t count = std::max<std::size_t>(1, bytes / sizeof(float));
  b.input.assign(count * n, 1.0F);
  b.output.assign(count * n, 0.0F);
  const auto region = [](std::vector<float>& v, std::size_t c) {
    return Region(v.data(), c * sizeof(float));
  };
  const Region oneIn = region(b.input, count), allIn = region(b.input, count * n);
  const Region oneOut = region(b.output, count), allOut = region(b.output, count * n);
  const DType f = DType::Float32;
  const bool root = world.rank() == 0;
  const Region none;
  if (name == "allreduce") return [=, &world] { world.allReduce(oneIn, oneOut, count, f).wait(); };
  if (name == "inplace") {  // allreduce
    return [=, &world] { world.allReduce(oneIn, oneIn, count, f).wait(); };
  }
  if (name == "allgather") return [=, &world] { world.allGather(oneIn, allOut, count, f).wait(); };
  if (name == "reducescatter") {
    return [=, &world] { world.reduceScatter(allIn, oneOut, count, f).wait(); };
  }
  if (name == "alltoall") return [=, &world] { world.allToAll(allIn, allOut, count, f).wait(); };
  if (name == "broadcast") {
    return [=, &world] { world.broadcast(root ? oneIn : none, oneOut, count, f, 0).wait(); };
  }
  if (name == "reduce") {
    return [=, &world] { world.reduce(oneIn, root ? oneOut : none, count, f, 0).wait(); };
  }
  if (name == "gather") {
    return [=, &world] { world.gather(oneIn, root ? allOut : none, count, f, 0).wait(); };
  }
  if (name == "scatter") {
    return [=, &world] { world.scatter(root ? allIn : none, oneOut, count, f, 0).wait(); };
  }
  if (name == "sendrecv") {
    return [=, &world] {
      const int peer = world.rank() ^ 1;
      if (world.rank() % 2 == 0) {
        world.send(oneIn, f, peer).wait();
        world.recv(oneOut, f, peer).wait();
      } else {
        world.recv(oneOut, f, peer).wait();
        world.send(oneIn, f, peer).wait();
      }
    };
  }
  if (name == "stream") {
    return [=, &world] {
      std::vector<byway::Work> works;
      for (int i = 0; i < kStream; ++i) {
        works.push_back(world.rank() == 0 ? world.send(oneIn, f, 1) : world.recv(oneOut, f, 0));
      }
      for (const auto& work : works) work.wait();
    };
  }
  if (name == "barrier") return [&world] { world.barrier().wait(); };
  std::fprintf(stderr, "flat_calls: no collective \"%s\"\n", name.c_str());
  std::exit(2);
}

// `world` keeps the ranks in step, `timed` makes the calls.
void measure(byway::Communicator& world, byway::Communicator& timed, const std::string& name,
             std::size_t bytes) {
  Buffers buffers;
  const auto call = callOf(timed, name, bytes, buffers);
  const auto slowest = [&](double mine) {
    double all = 0;
    world
        .allReduce(Region(&mine, sizeof mine), Region(&all, sizeof all), 1, DType::Float64,
                   byway::ReduceOp::Max)
        .wait();
    return all;
  };
  for (int i = 0; i < 3; ++i) call();
  double once = seconds();
  call();
  once = slowest(seconds() - once);
  constexpr double kBatch = 0.02;
  const int repeats = std::clamp(static_cast<int>(kBatch / once), 1, 20000);
  std::vector<double> times;
  for (int batch = 0; batch < 11; ++batch) {
    world.barrier().wait();
    const double start = seconds();
    for (int i = 0; i < repeats; ++i) call();
    times.push_back(slowest((seconds() - start) / repeats));
  }
  std::sort(times.begin(), times.end());
  if (world.rank() != 0) return;
  std::printf("%-14s n=%d %9zu B  median %10.2f us  best %10.2f us\n", name.c_str(), world.size(),
              bytes, times[times.size() / 2] * 1e6, times[0] * 1e6);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> names;
  byway::CommunicatorOptions options;
  constexpr const char* kRoute = "route=";
  std::vector<std::size_t> sizes;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], kRoute, std::strlen(kRoute)) == 0) {
      options.route = argv[i] + std::strlen(kRoute);
    } else if (std::isdigit(static_cast<unsigned char>(argv[i][0])) != 0) {
      sizes.push_back(std::strtoull(argv[i], nullptr, 10));
    } else {
      names.emplace_back(argv[i]);
    }
  }
  if (names.empty()) names = {"allreduce"};
  if (sizes.empty()) sizes = {8, 4096, 65536, 1U << 20, 64U << 20};
  const auto world = byway::Communicator::world();
  const auto timed = byway::Communicator::world(options);
  for (const auto& name : names) {
    for (const std::size_t bytes : sizes) measure(*world, *timed, name, bytes);
  }
  return 0;
}
