// SPDX-License-Identifier: BSD-3-Clause
#include "byway/comm/communicator.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "byway/comm/threads_test_util.h"

namespace byway {
namespace {

using Ints = std::vector<std::int32_t>;

// Depends on rank, call and index.
std::int32_t value(int rank, int call, std::size_t index) {
  return static_cast<std::int32_t>(1000003 * rank + 7919 * call + static_cast<int>(index) * 13 + 1);
}

Ints filled(int rank, int call, std::size_t count) {
  Ints v(count);
  for (std::size_t i = 0; i < count; ++i) v[i] = value(rank, call, i);
  return v;
}

class EverySize : public testing::TestWithParam<int> {};

TEST_P(EverySize, AllReduceInAndOutOfPlace) {
  ThreadRanks().run(GetParam(), {}, [](Communicator& comm) {
    int call = 0;
    for (const std::size_t count : {0, 1, 2, 3, 17, 1000, 70001}) {
      ++call;
      Ints in = filled(comm.rank(), call, count);
      Ints out(count, -1);
      comm.allReduce(regionOf(in), regionOf(out), count, DType::Int32).wait();
      EXPECT_EQ(in, filled(comm.rank(), call, count));
      comm.allReduce(regionOf(in), regionOf(in), count, DType::Int32, ReduceOp::Max).wait();
      for (std::size_t i = 0; i < count; ++i) {
        std::int32_t sum = 0;
        for (int r = 0; r < comm.size(); ++r) sum += value(r, call, i);
        ASSERT_EQ(out[i], sum) << i;
        ASSERT_EQ(in[i], value(comm.size() - 1, call, i)) << i;
      }
    }
  });
}

// A call that is made again may use the last one's object (RepeatedCall), but not while anybody has
// it: every Work stays the one of its own call.
TEST_P(EverySize, WorksOfEqualCallsAreKeptApart) {
  ThreadRanks().run(GetParam(), {}, [](Communicator& comm) {
    constexpr int kCalls = 40, kHeld = 7;
    constexpr std::size_t kCount = 3;
    std::vector<Ints> in, out(kCalls, Ints(kCount, -1));
    for (int call = 0; call < kCalls; ++call) in.push_back(filled(comm.rank(), call, kCount));
    std::vector<Work> works;
    std::atomic<int> called{0};
    for (int call = 0; call < kCalls; ++call) {
      const auto at = static_cast<std::size_t>(call);
      Work work = comm.allReduce(regionOf(in[at]), regionOf(out[at]), kCount, DType::Int32);
      EXPECT_EQ(work.sequence(), call);
      if (call % 3 == 0) work.wait();
      work.whenDone([&] { ++called; });
      if (call % kHeld < 3) works.push_back(std::move(work));  // the others are dropped at once
    }
    comm.barrier().wait();
    int call = 0;
    for (const Work& work : works) {
      while (call % kHeld >= 3) ++call;
      EXPECT_TRUE(work.done());
      EXPECT_EQ(work.sequence(), call++);
      work.wait();
    }
    for (int c = 0; c < kCalls; ++c) {
      for (std::size_t i = 0; i < kCount; ++i) {
        std::int32_t sum = 0;
        for (int r = 0; r < comm.size(); ++r) sum += value(r, c, i);
        ASSERT_EQ(out[static_cast<std::size_t>(c)][i], sum) << c << ' ' << i;
      }
    }
    comm.destroy(1);
    EXPECT_EQ(called, kCalls);
    EXPECT_EQ(errorOf([&] {
                comm.allReduce(regionOf(in[0]), regionOf(out[0]), kCount, DType::Int32);
              }).code(),
              ErrorCode::Broken);
  });
}

// What a call held is let go of when it ends, not when its object is used again.
TEST_P(EverySize, EqualCallsLetGoOfWhatTheyHold) {
  ThreadRanks().run(GetParam(), {}, [](Communicator& comm) {
    for (int call = 0; call < 3; ++call) {
      Ints data = filled(comm.rank(), call, 5);
      CallOptions options;
      options.keepAlive = std::make_shared<int>(call);
      const std::weak_ptr<void> held = options.keepAlive;
      const Work work =
          comm.allReduce(regionOf(data), regionOf(data), 5, DType::Int32, {}, options);
      options.keepAlive.reset();
      work.wait();
      EXPECT_TRUE(held.expired()) << call;
    }
  });
}

TEST_P(EverySize, MovementCollectives) {
  ThreadRanks().run(GetParam(), {}, [](Communicator& comm) {
    const int n = comm.size();
    const auto ranks = static_cast<std::size_t>(n);
    for (const std::size_t count : {0, 1, 5, 4097}) {
      const int call = static_cast<int>(count);
      Ints in = filled(comm.rank(), call, count);
      Ints all(count * ranks, -1);
      comm.allGather(regionOf(in), regionOf(all), count, DType::Int32).wait();
      for (int r = 0; r < n; ++r) {
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(all[static_cast<std::size_t>(r) * count + i], value(r, call, i));
        }
      }
      Ints segments = filled(comm.rank(), call, count * ranks);
      Ints received(count * ranks, -1);
      comm.allToAll(regionOf(segments), regionOf(received), count, DType::Int32).wait();
      for (int r = 0; r < n; ++r) {
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(received[static_cast<std::size_t>(r) * count + i],
                    value(r, call, static_cast<std::size_t>(comm.rank()) * count + i));
        }
      }
    }
  });
}

TEST_P(EverySize, RootedCollectivesFromEveryRoot) {
  ThreadRanks().run(GetParam(), {}, [](Communicator& comm) {
    const auto ranks = static_cast<std::size_t>(comm.size());
    const std::size_t count = 37;
    for (int root = 0; root < comm.size(); ++root) {
      const bool isRoot = comm.rank() == root;
      Ints in = filled(comm.rank(), root, count);
      Ints out(count, -1);
      comm.broadcast(isRoot ? regionOf(in) : Region(), regionOf(out), count, DType::Int32, root)
          .wait();
      EXPECT_EQ(out, filled(root, root, count));

      Ints sum(isRoot ? count : 0, -1);
      comm.reduce(regionOf(in), regionOf(sum), count, DType::Int32, root).wait();
      for (std::size_t i = 0; i < sum.size(); ++i) {
        std::int32_t want = 0;
        for (int r = 0; r < comm.size(); ++r) want += value(r, root, i);
        ASSERT_EQ(sum[i], want);
      }
      EXPECT_EQ(in, filled(comm.rank(), root, count)) << "reduce wrote its input";

      Ints gathered(isRoot ? count * ranks : 0, -1);
      comm.gather(regionOf(in), regionOf(gathered), count, DType::Int32, root).wait();
      Ints scattered(count, -1);
      comm.scatter(regionOf(gathered), regionOf(scattered), count, DType::Int32, root).wait();
      EXPECT_EQ(scattered, in);
    }
  });
}

TEST_P(EverySize, UnevenReduceScatterKeepsTheOwnersContribution) {
  ThreadRanks().run(GetParam(), {}, [](Communicator& comm) {
    std::vector<std::uint64_t> counts;
    std::uint64_t total = 0;
    std::uint64_t mine = 0;
    for (int r = 0; r < comm.size(); ++r) {
      counts.push_back(static_cast<std::uint64_t>(3 * r + 1));
      if (r == comm.rank()) mine = total;
      total += counts.back();
    }
    Ints in = filled(comm.rank(), 1, total);
    Ints out(counts[static_cast<std::size_t>(comm.rank())], -1);
    comm.reduceScatter(regionOf(in), regionOf(out), counts, DType::Int32).wait();
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::int32_t want = 0;
      for (int r = 0; r < comm.size(); ++r) want += value(r, 1, mine + i);
      ASSERT_EQ(out[i], want);
    }
    Ints all(total, -1);
    comm.allGather(regionOf(out), regionOf(all), counts, DType::Int32).wait();
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(all[mine + i], out[i]);
  });
}

// Nobody leaves before the last has entered.
TEST_P(EverySize, Barrier) {
  std::atomic<int> entered{0};
  ThreadRanks().run(GetParam(), {}, [&entered](Communicator& comm) {
    for (int round = 0; round < 20; ++round) {
      ++entered;
      comm.barrier().wait();
      EXPECT_GE(entered.load(), (round + 1) * comm.size());
      comm.barrier().wait();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, EverySize, testing::Values(1, 2, 3, 4, 5, 7, 8));

TEST(Communicator, CoalescedListsEqualSingleCalls) {
  ThreadRanks().run(3, {}, [](Communicator& comm) {
    const std::vector<std::size_t> sizes{5, 0, 129, 1};
    std::vector<Ints> ins;
    std::vector<Ints> sums;
    std::vector<Ints> alls;
    std::vector<Ints> blocks;
    std::vector<Region> in;
    std::vector<Region> sum;
    std::vector<Region> all;
    std::vector<Region> block;
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      ins.push_back(filled(comm.rank(), static_cast<int>(t), sizes[t]));
      sums.emplace_back(sizes[t]);
      alls.emplace_back(sizes[t] * 3);
      blocks.emplace_back(sizes[t]);
    }
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      in.push_back(regionOf(ins[t]));
      sum.push_back(regionOf(sums[t]));
      all.push_back(regionOf(alls[t]));
      block.push_back(regionOf(blocks[t]));
    }
    comm.allReduceCoalesced(in, sum, DType::Int32).wait();
    comm.allGatherCoalesced(in, all, DType::Int32).wait();
    comm.reduceScatterCoalesced(all, block, DType::Int32).wait();
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      Ints one(sizes[t]);
      comm.allReduce(in[t], regionOf(one), sizes[t], DType::Int32).wait();
      EXPECT_EQ(sums[t], one);
      Ints gathered(sizes[t] * 3);
      comm.allGather(in[t], regionOf(gathered), sizes[t], DType::Int32).wait();
      EXPECT_EQ(alls[t], gathered);
      for (std::size_t i = 0; i < sizes[t]; ++i) ASSERT_EQ(blocks[t][i], 3 * ins[t][i]);
    }
  });
}

TEST(Communicator, FusedGroupsWithHelpersAndOneRankGroups) {
  CommunicatorOptions options;
  options.topology = "mesh:6@1G,1";
  ThreadRanks().run(6, options, [](Communicator& comm) {
    const std::vector<std::vector<CallGroup>> cases{
        {{{4, 1}, 0, 100000, {}}},
        {{{0, 1}, 0, 4096, {}}, {{3, 2}, 0, 4096, {}}, {{5, 4}, 0, 4096, {}}},
        {{{2}, 0, 9, {}}, {{5, 0, 3}, 0, 9, {}}},
        {{{1, 2}, 0, 0, {}}, {{0, 3}, 0, 77, {}}},
        {}};
    int call = 0;
    for (const auto& groups : cases) {
      ++call;
      const CallGroup* mine = nullptr;
      for (const CallGroup& g : groups) {
        for (const int r : g.ranks) {
          if (r == comm.rank()) mine = &g;
        }
      }
      const std::size_t count = mine != nullptr ? mine->count : 0;
      Ints in = filled(comm.rank(), call, count);
      Ints out(count, -1);
      comm.fused(Collective::AllReduce, groups, {regionOf(in), regionOf(out)}, DType::Int32).wait();
      for (std::size_t i = 0; i < count; ++i) {
        std::int32_t want = 0;
        for (const int r : mine->ranks) want += value(r, call, i);
        ASSERT_EQ(out[i], want) << "case " << call << " index " << i;
      }
    }
  });
}

TEST(Communicator, CallsUnderWayTogetherKeepTheirOrderOnOneBuffer) {
  ThreadRanks().run(4, {}, [](Communicator& comm) {
    Ints a = filled(comm.rank(), 1, 5000);
    std::vector<Work> works;
    for (int i = 0; i < 20; ++i) {
      works.push_back(comm.allReduce(regionOf(a), regionOf(a), a.size(), DType::Int32));
    }
    for (const Work& work : works) work.wait();
    for (std::size_t i = 0; i < a.size(); ++i) {
      std::uint32_t want = 0;
      for (int r = 0; r < 4; ++r) want += static_cast<std::uint32_t>(value(r, 1, i));
      for (int k = 1; k < 20; ++k) want *= 4;
      ASSERT_EQ(static_cast<std::uint32_t>(a[i]), want);
    }
  });
}

// Far more data than stage memory: the call goes in rounds.
TEST(Communicator, StageMemoryStaysWithinItsQuota) {
  CommunicatorOptions options;
  options.stageQuota = 1 << 16;
  options.topology = "mesh:5@1G,1";
  ThreadRanks().run(5, options, [](Communicator& comm) {
    const std::size_t count = 1 << 20;
    const std::vector<CallGroup> groups{{{0, 3}, 0, count, {}}};
    const bool active = comm.rank() == 0 || comm.rank() == 3;
    Ints in = active ? filled(comm.rank(), 1, count) : Ints();
    Ints out(in.size(), -1);
    for (int i = 0; i < 2; ++i) {
      comm.fused(Collective::AllReduce, groups, {regionOf(in), regionOf(out)}, DType::Int32).wait();
      for (std::size_t k = 0; k < out.size(); ++k)
        ASSERT_EQ(out[k], value(0, 1, k) + value(3, 1, k));
    }
    EXPECT_LE(comm.stagePeak(), comm.options().stageQuota);
  });
}

// A call of several rounds between small ones: ranks that need no stage memory for it take none.
TEST(Communicator, CallsOfSeveralRoundsAndOfOneUnderWayTogether) {
  CommunicatorOptions options;
  options.stageQuota = 1 << 20;
  options.topology = "mesh:4@1G,1";
  ThreadRanks().run(4, options, [](Communicator& comm) {
    const std::size_t count = 4 << 20;
    const std::vector<CallGroup> pair{{{0, 1}, 0, count, {}}};
    Ints in = comm.rank() < 2 ? filled(comm.rank(), 1, count) : Ints();
    Ints sum(comm.rank() == 0 ? count : 0, -1);
    for (int i = 0; i < 3; ++i) {
      Ints a = filled(comm.rank(), 2, 700);
      Ints b = filled(comm.rank(), 3, 9000);
      const Work first = comm.allReduce(regionOf(a), regionOf(a), a.size(), DType::Int32);
      const Work large =
          comm.fused(Collective::Reduce, pair, {regionOf(in), regionOf(sum)}, DType::Int32);
      const Work last = comm.allReduce(regionOf(b), regionOf(b), b.size(), DType::Int32);
      last.wait();
      large.wait();
      first.wait();
      for (std::size_t k = 0; k < sum.size(); ++k)
        ASSERT_EQ(sum[k], value(0, 1, k) + value(1, 1, k));
    }
  });
}

TEST(Communicator, ACallbackMayWaitForOtherCalls) {
  ThreadRanks().run(2, {}, [](Communicator& comm) {
    Ints a = filled(comm.rank(), 1, 1000);
    Ints b = filled(comm.rank(), 2, 1000);
    std::atomic<bool> called{false};
    const Work first = comm.allReduce(regionOf(a), regionOf(a), a.size(), DType::Int32);
    first.whenDone([&] {
      comm.allReduce(regionOf(b), regionOf(b), b.size(), DType::Int32).wait();
      called = true;
    });
    first.wait();
    while (!called) std::this_thread::yield();
    EXPECT_EQ(b[7], value(0, 2, 7) + value(1, 2, 7));
  });
}

// As a chained future does, which is completed by a callback: on the threads of the library alone,
// to any depth, also where both callbacks come at once and the first waits for the second.
TEST(Communicator, ACallbackMayWaitForAnotherCallback) {
  ThreadRanks().run(2, {}, [](Communicator& comm) {
    constexpr std::size_t kDepth = 4;
    std::vector<Ints> data;
    for (std::size_t k = 0; k < kDepth; ++k) data.push_back(filled(comm.rank(), k, 3000));
    std::vector<std::promise<void>> ends(kDepth);
    std::vector<std::future<void>> over;
    for (auto& end : ends) over.push_back(end.get_future());
    const auto start = [&](std::size_t k) {
      return comm.allReduce(regionOf(data[k]), regionOf(data[k]), data[k].size(), DType::Int32);
    };
    std::function<void(std::size_t)> chain = [&](std::size_t k) {
      start(k).whenDone([&, k] {
        Work::callbackMayBlock();
        if (k + 1 < kDepth) {
          chain(k + 1);
          over[k + 1].wait();
        }
        ends[k].set_value();
      });
    };
    chain(0);
    ASSERT_EQ(over[0].wait_for(std::chrono::seconds(20)), std::future_status::ready);

    std::promise<void> first, second;
    std::future<void> secondOver = second.get_future();
    const std::vector<Work> calls = {start(0), start(1)};
    calls[1].whenDone([&] { second.set_value(); });
    calls[0].whenDone([&] {
      Work::callbackMayBlock();
      secondOver.wait();
      first.set_value();
    });
    ASSERT_EQ(first.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
    for (std::size_t k = 2; k < kDepth; ++k) EXPECT_EQ(data[k][7], value(0, k, 7) + value(1, k, 7));
  });
}

}  // namespace
}  // namespace byway
