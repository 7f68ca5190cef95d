// SPDX-License-Identifier: BSD-3-Clause
// Mapped phases against messages: the same bits, the same errors (docs/host.md).
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "byway/base/hash.h"
#include "byway/comm/threads_test_util.h"
#include "byway/transport/mapped/board.h"

namespace byway {
namespace {

using Bytes = std::vector<std::byte>;

// Bits from rank, call and position; NaN, infinities and denormals are among them.
Bytes content(int rank, std::uint64_t call, std::size_t bytes) {
  Bytes data(bytes + 8);
  std::uint64_t h = hashMix(static_cast<std::uint64_t>(rank) + 1, call);
  for (std::size_t at = 0; at < bytes; at += 8) {
    h = hashMix(h, at);
    std::memcpy(data.data() + at, &h, 8);
  }
  data.resize(bytes);
  return data;
}

struct Case {
  Collective collective;
  DType dtype = DType::Float32;
  ReduceOp op = ReduceOp::Sum;
  std::uint64_t count = 1;
  int root = 0;
  bool inPlace = false;
  // More than once: by the call for all ranks, which is prepared the first time.
  int times = 1;
};

Work submit(Communicator& comm, const Case& c, const Region& from, const Region& to) {
  switch (c.times > 1 ? c.collective : Collective::Gather) {
    case Collective::AllReduce:
      return comm.allReduce(from, to, c.count, c.dtype, c.op);
    case Collective::AllGather:
      return comm.allGather(from, to, c.count, c.dtype);
    case Collective::ReduceScatter:
      return comm.reduceScatter(from, to, c.count, c.dtype, c.op);
    case Collective::AllToAll:
      return comm.allToAll(from, to, c.count, c.dtype);
    case Collective::Broadcast:
      return comm.broadcast(from, to, c.count, c.dtype, c.root);
    case Collective::Reduce:
      return comm.reduce(from, to, c.count, c.dtype, c.root, c.op);
    case Collective::Scatter:
      return comm.scatter(from, to, c.count, c.dtype, c.root);
    case Collective::Gather:
      break;
  }
  if (c.times > 1) return comm.gather(from, to, c.count, c.dtype, c.root);
  CallGroup group;
  group.ranks.resize(static_cast<std::size_t>(comm.size()));
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  group.root = c.root;
  group.count = c.count;
  return comm.fused(c.collective, std::span(&group, 1), {from, to}, c.dtype, c.op);
}

// One call on one rank; gives the rank's output.
Bytes callOf(Communicator& comm, const Case& c, std::uint64_t number) {
  const auto n = static_cast<std::size_t>(comm.size());
  const std::size_t one = c.count * sizeOf(c.dtype);
  const bool isRoot = comm.rank() == c.root;
  const auto own = static_cast<std::size_t>(comm.rank()) * one;
  std::size_t in = one, out = one;
  switch (c.collective) {
    case Collective::AllReduce:
      break;
    case Collective::AllGather:
      out = n * one;
      break;
    case Collective::ReduceScatter:
      in = n * one;
      break;
    case Collective::AllToAll:
      in = out = n * one;
      break;
    case Collective::Broadcast:
      in = isRoot ? one : 0;
      break;
    case Collective::Reduce:
      out = isRoot ? one : 0;
      break;
    case Collective::Gather:
      out = isRoot ? n * one : 0;
      break;
    case Collective::Scatter:
      in = isRoot ? n * one : 0;
      break;
  }
  Bytes input = content(comm.rank(), number, in);
  Bytes output(out, std::byte{0x5a});
  Region from = regionOf(input), to = regionOf(output);
  if (c.inPlace && c.collective != Collective::AllToAll && in > 0 && out > 0) {
    if (in > out) {
      to = Region(input.data() + own, one);
    } else {
      std::memcpy(output.data() + (out > in ? own : 0), input.data(), in);
      from = Region(output.data() + (out > in ? own : 0), in);
    }
  }
  submit(comm, c, from, to).wait();
  if (to.parts().size() == 1 && to.parts()[0].address != output.data()) {
    std::memcpy(output.data(), to.parts()[0].address, out);
  }
  return output;
}

// The outputs of all ranks for all cases.
using Results = std::map<std::pair<int, std::size_t>, Bytes>;

Results resultsOf(int n, bool mapped, const std::string& route, const std::vector<Case>& cases) {
  Results all;
  std::mutex mutex;
  CommunicatorOptions options;
  options.mapped = mapped;
  options.route = route;
  ThreadRanks().run(n, options, [&](Communicator& comm) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      Bytes bytes;
      for (int t = 0; t < cases[i].times; ++t) {
        const Bytes one = callOf(comm, cases[i], i * 1000 + static_cast<std::uint64_t>(t));
        bytes.insert(bytes.end(), one.begin(), one.end());
      }
      const std::scoped_lock lock(mutex);
      all[{comm.rank(), i}] = std::move(bytes);
    }
  });
  return all;
}

void expectSame(int n, const std::vector<Case>& cases, const std::string& route = "") {
  const Results sent = resultsOf(n, false, "", cases);
  const Results mapped = resultsOf(n, true, route, cases);
  ASSERT_EQ(sent.size(), mapped.size());
  for (const auto& [where, bytes] : sent) {
    const Case& c = cases[where.second];
    EXPECT_EQ(bytes, mapped.at(where))
        << toString(c.collective) << " of " << c.count << ' ' << toString(c.dtype) << " by "
        << toString(c.op) << (c.inPlace ? " in place" : "") << ", n = " << n << ", rank "
        << where.first;
  }
}

constexpr std::array kCollectives{
    Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter, Collective::AllToAll,
    Collective::Broadcast, Collective::Reduce,    Collective::Gather,        Collective::Scatter};

// Sizes on both sides of every border: in a publication's line, in the board, in the rank's memory.
TEST(Mapped, TheBitsAreThoseOfMessages) {
  for (const int n : {2, 3, 5}) {
    std::vector<Case> cases;
    for (const Collective collective : kCollectives) {
      for (const std::uint64_t count :
           {0U, 1U, 7U, 8U, 9U, 1000U, 16384U, 16385U, 30000U, 100003U}) {
        for (const bool inPlace : {false, true}) {
          cases.push_back({collective, DType::Float32, ReduceOp::Sum, count, n - 1, inPlace});
        }
      }
    }
    expectSame(n, cases);
  }
}

// More often than a board has slots. Ranks come by when they do, so that a call ends where it
// begins at some times and waits at each of its operations at others.
TEST(Mapped, CallsThatAreMadeAgain) {
  for (const int n : {2, 3, 5}) {
    std::vector<Case> cases;
    for (const Collective collective : kCollectives) {
      for (const std::uint64_t count : {1U, 9U, 3000U}) {
        cases.push_back({collective, DType::Float32, ReduceOp::Sum, count, n - 1, count == 9, 150});
      }
      cases.push_back({collective, DType::BFloat16, ReduceOp::Avg, 100003, 0, false, 5});
    }
    expectSame(n, cases);
  }
}

TEST(Mapped, EveryTypeAndOperation) {
  std::vector<Case> cases;
  for (int d = 0; d <= static_cast<int>(DType::Complex128); ++d) {
    const auto dtype = static_cast<DType>(d);
    for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Avg, ReduceOp::Product, ReduceOp::Min,
                              ReduceOp::Max, ReduceOp::BitAnd, ReduceOp::BitOr, ReduceOp::BitXor}) {
      if (whyUnsupported(dtype, op) != nullptr || dtype == DType::Bool) continue;
      for (const std::uint64_t count : {5U, 5000U}) {
        cases.push_back({Collective::AllReduce, dtype, op, count});
        cases.push_back({Collective::ReduceScatter, dtype, op, count});
        cases.push_back({Collective::Reduce, dtype, op, count, 1});
      }
    }
  }
  expectSame(3, cases);
}

// One that is too large for the board keeps its copies until the others have read them.
TEST(Mapped, AnExchangeOfAnySize) {
  std::vector<Case> cases;
  for (const std::uint64_t count : {1U, 40000U, 300001U}) {
    for (const bool inPlace : {false, true}) {
      cases.push_back({Collective::AllReduce, DType::Float32, ReduceOp::Sum, count, 0, inPlace});
    }
  }
  expectSame(3, cases, "mapped exchange");
  expectSame(3, cases, "mapped two-shot");
}

TEST(Mapped, LargeCallsGoInPieces) {
  for (const int n : {2, 4}) {
    std::vector<Case> cases;
    for (const Collective collective : kCollectives) {
      for (const bool inPlace : {false, true}) {
        cases.push_back({collective, DType::Float32, ReduceOp::Sum, 500009, n - 1, inPlace});
        cases.push_back({collective, DType::BFloat16, ReduceOp::Avg, 1000003, 0, inPlace});
      }
    }
    expectSame(n, cases);
  }
}

TEST(Mapped, TenThousandCallsOfMixedSizesManyAtATime) {
  constexpr int kCalls = 10000, kAhead = 8;
  ThreadRanks().run(2, {}, [](Communicator& comm) {
    std::vector<std::vector<float>> data(kAhead);
    std::vector<Work> works(kAhead);
    const auto valueOf = [](int rank, int call) {
      return static_cast<float>(rank * 3 + call % 100 + 1);
    };
    const auto check = [&](int call) {
      auto& values = data[static_cast<std::size_t>(call % kAhead)];
      works[static_cast<std::size_t>(call % kAhead)].wait();
      const float sum = valueOf(0, call) + valueOf(1, call);
      for (std::size_t i = 0; i < values.size(); i += std::max<std::size_t>(1, values.size() / 5)) {
        ASSERT_EQ(values[i], sum) << "call " << call << " element " << i;
      }
    };
    for (int call = 0; call < kCalls; ++call) {
      if (call >= kAhead) check(call - kAhead);
      const std::size_t count = call % 97 == 0 ? 50000 + static_cast<std::size_t>(call)
                                               : 1 + static_cast<std::size_t>(call % 40);
      auto& values = data[static_cast<std::size_t>(call % kAhead)];
      values.assign(count, valueOf(comm.rank(), call));
      works[static_cast<std::size_t>(call % kAhead)] =
          comm.allReduce(regionOf(values), regionOf(values), count, DType::Float32);
    }
    for (int call = kCalls - kAhead; call < kCalls; ++call) check(call);
  });
}

TEST(Mapped, ARootMayRunAheadAndIsHeldBackInTheEnd) {
  constexpr int kCalls = 2 * static_cast<int>(Board::kSlots) + 20;
  ThreadRanks().run(3, {}, [](Communicator& comm) {
    std::vector<Work> works;
    std::vector<std::vector<int>> values(kCalls, std::vector<int>(3));
    for (int call = 0; call < kCalls; ++call) {
      auto& mine = values[static_cast<std::size_t>(call)];
      if (comm.rank() == 0) mine.assign(3, call + 1);
      const Region all = regionOf(mine);
      works.push_back(comm.broadcast(comm.rank() == 0 ? all : Region(), all, 3, DType::Int32, 0));
    }
    for (int call = 0; call < kCalls; ++call) {
      works[static_cast<std::size_t>(call)].wait();
      EXPECT_EQ(values[static_cast<std::size_t>(call)], std::vector<int>(3, call + 1));
    }
  });
}

// Neither reads what the other publishes: found all the same.
TEST(Mapped, RootsThatDifferAreFound) {
  ThreadRanks().run(2, {}, [](Communicator& comm) {
    int in = 1, out = 0;
    const bool sends = comm.rank() == 0;
    const auto call = [&] {
      if (sends) {
        comm.broadcast(Region(&in, 4), Region(&out, 4), 1, DType::Int32, 0).wait();
      } else {
        comm.reduce(Region(&in, 4), Region(), 1, DType::Int32, 0).wait();
      }
      for (int i = 0; i < 3; ++i) {
        comm.allReduce(Region(&in, 4), Region(&out, 4), 1, DType::Int32).wait();
      }
    };
    const Error error = errorOf(call);
    const std::string what = error.what();
    EXPECT_NE(what.find("broadcast"), std::string::npos) << what;
    EXPECT_NE(what.find("reduce"), std::string::npos) << what;
  });
}

TEST(Mapped, TheOptionMustBeTheSameOnAllRanks) {
  ThreadRanks ranks;
  ThreadRanks::each(2, [&](int rank) {
    CommunicatorOptions options;
    options.timeout = 20;
    options.mapped = rank == 0;
    const Error error = errorOf([&] {
      Communicator::create(Endpoint::inproc(ranks.fabric), ranks.store, "odd", {0, 1}, rank,
                           options);
    });
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    EXPECT_NE(std::string(error.what()).find("BYWAY_MAPPED"), std::string::npos) << error.what();
  });
}

}  // namespace
}  // namespace byway
