// SPDX-License-Identifier: BSD-3-Clause
// What goes wrong: on every rank, within its time, naming what differs; and what it leaves behind.
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "byway/comm/threads_test_util.h"

namespace byway {
namespace {

using Floats = std::vector<float>;

// A failure of `code` that a rank meets in its call, or that was reported to it before it called.
void expectMet(const Error& error, ErrorCode code) {
  const bool reported = error.code() == ErrorCode::Broken &&
                        std::string(error.what()).find(toString(code)) != std::string::npos;
  EXPECT_TRUE(error.code() == code || reported) << toString(error.code()) << ": " << error.what();
}

void expectBroken(Communicator& comm) {
  Floats a(4);
  const Error error = errorOf([&] { comm.allReduce(regionOf(a), regionOf(a), 4, DType::Float32); });
  EXPECT_EQ(error.code(), ErrorCode::Broken) << error.what();
}

TEST(Failures, DifferentCountsAreFoundOnAllRanks) {
  ThreadRanks().run(4, {}, [](Communicator& comm) {
    Floats a(comm.rank() == 2 ? 409600 : 409598, 1.0F);
    const Error error = errorOf([&] {
      comm.allReduce(regionOf(a), regionOf(a), a.size(), DType::Float32, {},
                     {.timeout = 20, .keepAlive = nullptr})
          .wait();
    });
    expectMet(error, ErrorCode::Mismatch);
    const std::string what = error.what();
    EXPECT_NE(what.find("409600"), std::string::npos) << what;
    EXPECT_NE(what.find("409598"), std::string::npos) << what;
    EXPECT_NE(what.find("rank 2"), std::string::npos) << what;
    expectBroken(comm);
  });
}

TEST(Failures, OneAgainstTwoElementsAndNoneAtAll) {
  for (const std::size_t odd : {2, 0}) {
    ThreadRanks().run(3, {}, [odd](Communicator& comm) {
      Floats a(comm.rank() == 0 ? odd : 1, 1.0F);
      // A rank that has no data to wait for may succeed and learns at its next call.
      try {
        comm.allReduce(regionOf(a), regionOf(a), a.size(), DType::Float32, {},
                       {.timeout = 20, .keepAlive = nullptr})
            .wait();
        EXPECT_EQ(comm.rank(), 0);
        EXPECT_EQ(odd, 0U);
        Floats b(1);
        const Error next = errorOf([&] {
          comm.allReduce(regionOf(b), regionOf(b), 1, DType::Float32, {},
                         {.timeout = 20, .keepAlive = nullptr})
              .wait();
        });
        expectMet(next, ErrorCode::Mismatch);
      } catch (const Error& error) {
        expectMet(error, ErrorCode::Mismatch);
      }
      expectBroken(comm);
    });
  }
}

TEST(Failures, DifferentCollectivesDtypesAndOperations) {
  struct Odd {
    const char* what;
    std::function<Work(Communicator&, Floats&, Floats&)> call;
  };
  const Region none;
  const std::vector<Odd> cases{
      {"broadcast",
       [](Communicator& c, Floats& a, Floats& b) {
         return c.broadcast(c.rank() == 0 ? regionOf(a) : Region(), regionOf(b), a.size(),
                            DType::Float32, 0);
       }},
      {"int32",
       [](Communicator& c, Floats& a, Floats& b) {
         return c.allReduce(regionOf(a), regionOf(b), a.size(), DType::Int32);
       }},
      {"max",
       [](Communicator& c, Floats& a, Floats& b) {
         return c.allReduce(regionOf(a), regionOf(b), a.size(), DType::Float32, ReduceOp::Max);
       }},
      {"factors", [](Communicator& c, Floats& a, Floats& b) {
         return c.allReduce(regionOf(a), regionOf(b), a.size(), DType::Float32,
                            {ReduceOp::PremulSum, 0.25});
       }}};
  for (const Odd& odd : cases) {
    ThreadRanks().run(4, {}, [&odd](Communicator& comm) {
      Floats a(100, 1.0F);
      Floats b(100);
      const Error error = errorOf([&] {
        const bool premul = std::string(odd.what) == "factors";
        const Reduction usual = premul ? Reduction(ReduceOp::PremulSum, 0.5) : Reduction();
        const Work work = comm.rank() == 1 ? odd.call(comm, a, b)
                                           : comm.allReduce(regionOf(a), regionOf(b), a.size(),
                                                            DType::Float32, usual);
        work.wait();
        // A broadcast's root may be through before anything is found out.
        comm.allReduce(regionOf(a), regionOf(b), a.size(), DType::Float32).wait();
      });
      expectMet(error, ErrorCode::Mismatch);
      EXPECT_NE(std::string(error.what()).find(odd.what), std::string::npos) << error.what();
    });
  }
}

TEST(Failures, ALateRankMeansATimeoutThatNamesIt) {
  std::atomic<bool> late{false};
  ThreadRanks().run(3, {}, [&late](Communicator& comm) {
    if (comm.rank() == 2) {
      while (!late) std::this_thread::yield();
      // Learns at its next call, at once: at the call itself, or from its work where the news is
      // still on its way.
      Floats b(4);
      const Error error =
          errorOf([&] { comm.allReduce(regionOf(b), regionOf(b), 4, DType::Float32).wait(); });
      EXPECT_TRUE(error.code() == ErrorCode::Broken || error.code() == ErrorCode::Timeout)
          << error.what();
      return expectBroken(comm);
    }
    Floats a(1000, 1.0F);
    const auto start = std::chrono::steady_clock::now();
    const Error error = errorOf([&] {
      comm.allReduce(regionOf(a), regionOf(a), a.size(), DType::Float32, {},
                     {.timeout = 0.3, .keepAlive = nullptr})
          .wait();
    });
    const double took =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    expectMet(error, ErrorCode::Timeout);
    EXPECT_LT(took, 1.3);
    EXPECT_NE(std::string(error.what()).find('2'), std::string::npos) << error.what();
    expectBroken(comm);
    // Rank 2's engine has the news once a control message of a later call could arrive; both of the
    // others told it.
    late = true;
  });
}

TEST(Failures, AWaitMayTimeOutAndBeTriedAgain) {
  std::atomic<bool> go{false};
  ThreadRanks().run(2, {}, [&go](Communicator& comm) {
    Floats a(10, 1.0F);
    if (comm.rank() == 1) {
      while (!go) std::this_thread::yield();
    }
    const Work work = comm.allReduce(regionOf(a), regionOf(a), a.size(), DType::Float32);
    if (comm.rank() == 0) {
      EXPECT_FALSE(work.waitFor(0.02));
      EXPECT_FALSE(work.done());
      go = true;
    }
    work.wait();
    work.wait();
    EXPECT_EQ(a[3], 2.0F);
  });
}

TEST(Failures, WrongArgumentsThrowAtTheCallAndHarmNothing) {
  ThreadRanks().run(4, {}, [](Communicator& comm) {
    Floats a(100, 1.0F);
    const auto code = [](const std::function<void()>& fn) { return errorOf(fn).code(); };
    const auto invalid = ErrorCode::InvalidArgument;
    EXPECT_EQ(code([&] { comm.allReduce(regionOf(a), regionOf(a), 99, DType::Float32); }), invalid);
    EXPECT_EQ(code([&] {
                comm.allReduce(regionOf(a), regionOf(a), 100, DType::Float32, ReduceOp::BitAnd);
              }),
              invalid);
    EXPECT_EQ(code([&] { comm.broadcast(regionOf(a), regionOf(a), 100, DType::Float32, 4); }),
              invalid);
    EXPECT_EQ(code([&] { comm.allToAll(regionOf(a), regionOf(a), 25, DType::Float32); }), invalid);
    EXPECT_EQ(code([&] {
                comm.allReduce(Region(a.data(), 200), Region(a.data() + 1, 200), 50,
                               DType::Float32);
              }),
              invalid);
    const std::vector<CallGroup> twice{{{0, 1}, 0, 4, {}}, {{1, 2}, 0, 4, {}}};
    EXPECT_EQ(code([&] { comm.fused(Collective::AllReduce, twice, {}, DType::Float32); }), invalid);
    // The same mistake on every rank: the communicator goes on.
    comm.allReduce(regionOf(a), regionOf(a), a.size(), DType::Float32).wait();
    EXPECT_EQ(a[0], 4.0F);
  });
}

TEST(Failures, AMistakeOfOneRankReleasesTheOthers) {
  CommunicatorOptions options;
  options.topology = "mesh:8@1G,1";
  ThreadRanks().run(8, options, [](Communicator& comm) {
    const std::vector<CallGroup> groups{{{0, 1}, 0, 1000, {}}};
    Floats a(2000, 1.0F);
    const bool active = comm.rank() < 2;
    const Error error = errorOf([&] {
      comm.fused(Collective::AllToAll, groups,
                 active ? FusedArgs{regionOf(a), regionOf(a)} : FusedArgs{}, DType::Float32, {},
                 {.timeout = 20, .keepAlive = nullptr})
          .wait();
    });
    // A second active rank may learn of the first one's mistake before it makes its own.
    if (active && error.code() != ErrorCode::Broken) {
      EXPECT_EQ(error.code(), ErrorCode::InvalidArgument) << error.what();
    } else {
      expectMet(error, ErrorCode::Mismatch);
    }
  });
}

TEST(Failures, SettingsThatDifferAreNamedOnAllRanks) {
  ThreadRanks world;
  ThreadRanks::each(3, [&](int rank) {
    CommunicatorOptions options;
    options.timeout = 20;
    options.topology = rank == 1 ? "mesh:3" : "host";
    const Error error = errorOf([&] {
      Communicator::create(Endpoint::inproc(world.fabric), world.store, "s", {0, 1, 2}, rank,
                           options);
    });
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    EXPECT_NE(std::string(error.what()).find("topology"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos) << error.what();
  });
}

TEST(Failures, ARankThatNeverJoinsIsNamed) {
  ThreadRanks world;
  ThreadRanks::each(2, [&](int rank) {
    CommunicatorOptions options;
    options.timeout = 0.2;
    const Error error = errorOf([&] {
      Communicator::create(Endpoint::inproc(world.fabric), world.store, "s", {0, 1, 5}, rank,
                           options);
    });
    EXPECT_EQ(error.code(), ErrorCode::Timeout);
    EXPECT_NE(std::string(error.what()).find("ranks 5"), std::string::npos) << error.what();
  });
}

TEST(Failures, ARankThatLeavesIsNamedAndNobodyWaitsForIt) {
  ThreadRanks world;
  ThreadRanks::each(4, [&](int rank) {
    auto comm =
        Communicator::create(Endpoint::inproc(world.fabric), world.store, "s", {0, 1, 2, 3}, rank);
    comm->barrier().wait();
    if (rank == 3) return comm->destroy(5);
    const Error error =
        errorOf([&] { comm->barrier({.timeout = 30, .keepAlive = nullptr}).wait(); });
    expectMet(error, ErrorCode::PeerLost);
    EXPECT_NE(std::string(error.what()).find("rank 3"), std::string::npos) << error.what();
  });
}

TEST(Failures, AbortFromAnotherThreadReleasesWaiters) {
  ThreadRanks world;
  std::atomic<int> released{0};
  ThreadRanks::each(3, [&](int rank) {
    auto comm =
        Communicator::create(Endpoint::inproc(world.fabric), world.store, "s", {0, 1, 2}, rank);
    if (rank == 2) {
      while (released < 2) std::this_thread::yield();
      return;
    }
    Floats a(100000, 1.0F);
    const Error error = errorOf([&] {
      const Work work = comm->allReduce(regionOf(a), regionOf(a), a.size(), DType::Float32);
      const std::jthread other([&] { comm->abort("the test says so"); });
      work.wait();
    });
    expectMet(error, ErrorCode::Aborted);
    ++released;
    comm->destroy(1);
    comm->destroy(1);
    EXPECT_EQ(errorOf([&] { comm->barrier(); }).code(), ErrorCode::Broken);
  });
  // The survivors go on under the same name.
  ThreadRanks::each(2, [&](int rank) {
    auto comm =
        Communicator::create(Endpoint::inproc(world.fabric), world.store, "s", {0, 1}, rank);
    comm->barrier().wait();
  });
}

// Rank 2 learns that call 1 failed before it makes call 0, which it then never makes: the others,
// who have made it, learn that from rank 2.
TEST(Failures, ARankThatIsToldBeforeAnEarlierCallReleasesTheOthers) {
  CommunicatorOptions options;
  options.timeout = 20;
  ThreadRanks().run(3, options, [](Communicator& comm) {
    const std::size_t odd = comm.rank() == 0 ? 4 : 5;
    Floats a(4, 1.0F), b(4), c(odd, 1.0F), d(odd);
    const auto call = [&](Floats& in, Floats& out) {
      return comm.allReduce(regionOf(in), regionOf(out), in.size(), DType::Float32);
    };
    if (comm.rank() == 2) {
      const Error told = errorOf([&] {
        for (;;) {
          const Work sent = comm.send(regionOf(a), DType::Float32, 2);
          comm.recv(regionOf(b), DType::Float32, 2).wait();
          sent.wait();
        }
      });
      expectMet(told, ErrorCode::Mismatch);
      EXPECT_EQ(errorOf([&] { call(a, b); }).code(), ErrorCode::Broken);
      return;
    }
    const Work first = call(a, b);
    const Work second = call(c, d);
    const Error later = errorOf([&] { second.wait(); });
    EXPECT_EQ(later.code(), ErrorCode::Mismatch) << later.what();
    const Error error = errorOf([&] { first.wait(); });
    EXPECT_EQ(error.code(), ErrorCode::Mismatch) << error.what();
    EXPECT_NE(std::string(error.what()).find("rank 2 reported"), std::string::npos) << error.what();
  });
}

TEST(Failures, NamesCanBeUsedAgain) {
  ThreadRanks world;
  ThreadRanks::each(3, [&](int rank) {
    for (int round = 0; round < 5; ++round) {
      auto comm = Communicator::create(Endpoint::inproc(world.fabric), world.store, "same",
                                       {2, 0, 1}, rank);
      Floats a(3, static_cast<float>(comm->rank()));
      comm->allReduce(regionOf(a), regionOf(a), 3, DType::Float32).wait();
      EXPECT_EQ(a[0], 3.0F);
      EXPECT_EQ(comm->rank(), (rank + 1) % 3);
    }
  });
}

// The lists of one rank are wrong: the others must not take its next call for this one.
TEST(Failures, AMistakeInACoalescedCallTakesItsNumber) {
  ThreadRanks().run(3, {}, [](Communicator& comm) {
    Floats a(3, static_cast<float>(comm.rank()));
    Floats b(3);
    const std::vector<Region> in{regionOf(a)};
    std::vector<Region> out{regionOf(b)};
    if (comm.rank() == 0) out.emplace_back();
    const Error error = errorOf([&] {
      comm.allReduceCoalesced(in, out, DType::Float32, {}, {.timeout = 20, .keepAlive = nullptr})
          .wait();
    });
    if (comm.rank() == 0) {
      EXPECT_EQ(error.code(), ErrorCode::InvalidArgument) << error.what();
    } else {
      expectMet(error, ErrorCode::Mismatch);
    }
  });
}

TEST(Failures, NumbersThatNameNothingAreRefused) {
  ThreadRanks().run(1, {}, [](Communicator& comm) {
    Floats a(4);
    const auto code = [](const std::function<void()>& fn) { return errorOf(fn).code(); };
    const auto invalid = ErrorCode::InvalidArgument;
    EXPECT_EQ(code([&] { comm.allReduce(regionOf(a), regionOf(a), 4, static_cast<DType>(99)); }),
              invalid);
    EXPECT_EQ(code([&] {
                comm.allReduce(regionOf(a), regionOf(a), 4, DType::Float32,
                               static_cast<ReduceOp>(99));
              }),
              invalid);
    EXPECT_EQ(code([&] { comm.send(regionOf(a), static_cast<DType>(99), 0); }), invalid);
    EXPECT_EQ(code([&] {
                comm.allReduce(regionOf(a), regionOf(a), 4, DType::Float32, {},
                               {.timeout = -1, .keepAlive = nullptr});
              }),
              invalid);
  });
}

// Calls and aborts of other threads while the communicator is destroyed end in an error at worst.
TEST(Failures, DestroyMeetsCallsOfOtherThreads) {
  for (int round = 0; round < 30; ++round) {
    ThreadRanks().run(2, {}, [](Communicator& comm) {
      const std::jthread aborts([&] {
        for (int i = 0; i < 20; ++i) comm.abort("the test says so");
      });
      const std::jthread calls([&] {
        try {
          for (;;) comm.barrier({.timeout = 5, .keepAlive = nullptr}).wait();
        } catch (const Error&) {
        }
      });
      comm.destroy(2);
    });
  }
}

// News of communicators that ended here must not crowd out news of those to come.
TEST(Failures, LateNewsOfManyCommunicatorsIsForgotten) {
  ThreadRanks world;
  const auto endpoints = std::array{Endpoint::inproc(world.fabric), Endpoint::inproc(world.fabric)};
  ThreadRanks::each(2, [&](int rank) {
    const auto& endpoint = endpoints[static_cast<std::size_t>(rank)];
    for (int i = 0; i < 1200; ++i) {
      auto comm = Communicator::create(endpoint, world.store, "many", {0, 1}, rank);
      comm->barrier().wait();
    }
    auto comm = Communicator::create(endpoint, world.store, "last", {0, 1}, rank);
    if (rank == 0) return comm->abort("the test says so");
    const Error error =
        errorOf([&] { comm->barrier({.timeout = 20, .keepAlive = nullptr}).wait(); });
    expectMet(error, ErrorCode::Aborted);
  });
}

}  // namespace
}  // namespace byway
