// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "byway/comm/threads_test_util.h"

namespace byway {
namespace {

using Ints = std::vector<std::int32_t>;

Ints message(int from, int to, int number, std::size_t count) {
  Ints v(count);
  for (std::size_t i = 0; i < count; ++i) {
    v[i] = 1000000 * from + 10000 * to + 37 * number + static_cast<std::int32_t>(i);
  }
  return v;
}

SendOrRecv sendOf(Ints& v, int peer, std::uint32_t tag = 0) {
  return {SendOrRecv::Kind::Send, peer, regionOf(v), DType::Int32, tag};
}
SendOrRecv recvOf(Ints& v, int peer, std::uint32_t tag = 0) {
  return {SendOrRecv::Kind::Recv, peer, regionOf(v), DType::Int32, tag};
}

TEST(PointToPoint, SizesAcrossTheEagerLimitInBothDirections) {
  ThreadRanks().run(2, {}, [](Communicator& comm) {
    const int other = 1 - comm.rank();
    for (const std::size_t count : {0, 1, 2047, 2048, 2049, 300000}) {
      Ints out = message(comm.rank(), other, 1, count);
      Ints in(count);
      const Work sent = comm.send(regionOf(out), DType::Int32, other);
      comm.recv(regionOf(in), DType::Int32, other).wait();
      sent.wait();
      EXPECT_EQ(in, message(other, comm.rank(), 1, count));
    }
  });
}

// Two messages with one tag, waited for in reverse order; the receives keep the order of the sends.
TEST(PointToPoint, OneTagKeepsItsOrder) {
  ThreadRanks().run(2, {}, [](Communicator& comm) {
    Ints a = message(0, 1, 1, 20000);
    Ints b = message(0, 1, 2, 20000);
    if (comm.rank() == 0) {
      const Work first = comm.send(regionOf(a), DType::Int32, 1, 5);
      const Work second = comm.send(regionOf(b), DType::Int32, 1, 5);
      second.wait();
      first.wait();
      return;
    }
    Ints x(20000);
    Ints y(20000);
    const Work first = comm.recv(regionOf(x), DType::Int32, 0, 5);
    const Work second = comm.recv(regionOf(y), DType::Int32, 0, 5);
    second.wait();
    first.wait();
    EXPECT_EQ(x, a);
    EXPECT_EQ(y, b);
  });
}

TEST(PointToPoint, TagsAreToldApart) {
  ThreadRanks().run(2, {}, [](Communicator& comm) {
    Ints a = message(0, 1, 1, 10);
    Ints b = message(0, 1, 2, 10);
    if (comm.rank() == 0) {
      comm.send(regionOf(a), DType::Int32, 1, 7).wait();
      comm.send(regionOf(b), DType::Int32, 1, 2147483647).wait();
      return;
    }
    Ints x(10);
    comm.recv(regionOf(x), DType::Int32, 0, 2147483647).wait();
    EXPECT_EQ(x, b);
    comm.recv(regionOf(x), DType::Int32, 0, 7).wait();
    EXPECT_EQ(x, a);
  });
}

TEST(PointToPoint, AnySourceReportsWhereTheDataCameFrom) {
  ThreadRanks().run(4, {}, [](Communicator& comm) {
    if (comm.rank() != 1) {
      for (int k = 0; k < 2; ++k) {
        Ints out = message(comm.rank(), 1, k, 3000);
        comm.send(regionOf(out), DType::Int32, 1).wait();
      }
      return;
    }
    std::map<int, int> seen;
    std::vector<Ints> in(6, Ints(3000));
    std::vector<Work> works;
    for (Ints& buffer : in)
      works.push_back(comm.recv(regionOf(buffer), DType::Int32, kFromAnyRank));
    for (std::size_t i = 0; i < works.size(); ++i) {
      works[i].wait();
      const int source = works[i].source();
      EXPECT_EQ(in[i], message(source, 1, seen[source]++, 3000));
    }
    EXPECT_EQ(seen, (std::map<int, int>{{0, 2}, {2, 2}, {3, 2}}));
  });
}

TEST(PointToPoint, ToOneselfAndBatchesInAnyOrder) {
  ThreadRanks().run(3, {}, [](Communicator& comm) {
    std::vector<Ints> out;
    std::vector<Ints> in;
    std::vector<SendOrRecv> parts;
    for (int r = 0; r < 3; ++r) {
      out.push_back(message(comm.rank(), r, 9, 5000));
      in.emplace_back(5000);
    }
    for (int r = 0; r < 3; ++r) {
      parts.push_back(sendOf(out[static_cast<std::size_t>(r)], r));
      parts.push_back(recvOf(in[static_cast<std::size_t>(r)], r));
    }
    if (comm.rank() == 1) std::reverse(parts.begin(), parts.end());
    comm.batch(parts).wait();
    for (int r = 0; r < 3; ++r) {
      EXPECT_EQ(in[static_cast<std::size_t>(r)], message(r, comm.rank(), 9, 5000));
    }
    comm.batch({}).wait();
  });
}

// As the first call, between some ranks only; the others do not block, and collectives go on.
TEST(PointToPoint, OnlySomeRanksTakePart) {
  ThreadRanks().run(4, {}, [](Communicator& comm) {
    const auto exchange = [&](int other) {
      Ints out = message(comm.rank(), other, 3, 100);
      Ints in(100);
      const std::vector<SendOrRecv> parts{sendOf(out, other), recvOf(in, other)};
      comm.batch(parts).wait();
      EXPECT_EQ(in, message(other, comm.rank(), 3, 100));
    };
    if (comm.rank() < 2) exchange(1 - comm.rank());
    for (int distance = 1; distance < 4; ++distance) exchange(comm.rank() ^ distance);
    Ints sum(1, comm.rank());
    comm.allReduce(regionOf(sum), regionOf(sum), 1, DType::Int32).wait();
    EXPECT_EQ(sum[0], 6);
  });
}

TEST(PointToPoint, UnequalSizesAndDtypesNameBothSides) {
  for (const std::size_t received : {4, 5, 2, 0}) {
    ThreadRanks().run(2, {}, [received](Communicator& comm) {
      Ints v(comm.rank() == 0 ? 3 : received, 1);
      const Error error = errorOf([&] {
        const CallOptions options{.timeout = 20, .keepAlive = nullptr};
        if (comm.rank() == 0) {
          comm.send(regionOf(v), DType::Int32, 1, 0, options).wait();
          // A small send may be through; the next one is not.
          comm.send(regionOf(v), DType::Int32, 1, 0, options).wait();
          comm.barrier(options).wait();
        } else {
          comm.recv(regionOf(v), DType::Int32, 0, 0, options).wait();
        }
      });
      EXPECT_TRUE(error.code() == ErrorCode::Mismatch || error.code() == ErrorCode::Broken)
          << error.what();
      const std::string what = error.what();
      EXPECT_NE(what.find("3 elements of int32"), std::string::npos) << what;
      EXPECT_NE(what.find(std::to_string(received) + " elements of int32"), std::string::npos)
          << what;
      if (comm.rank() == 1) {
        EXPECT_EQ(v, Ints(received, 1)) << "part of it was filled";
      }
    });
  }
}

TEST(PointToPoint, UnequalSizesInABatch) {
  ThreadRanks().run(2, {}, [](Communicator& comm) {
    Ints right = message(comm.rank(), 1 - comm.rank(), 0, 7);
    Ints wrong(comm.rank() == 0 ? 3 : 4, 1);
    Ints in(7);
    std::vector<SendOrRecv> parts{sendOf(right, 1 - comm.rank(), 1),
                                  recvOf(in, 1 - comm.rank(), 1)};
    parts.push_back(comm.rank() == 0 ? sendOf(wrong, 1, 2) : recvOf(wrong, 0, 2));
    const CallOptions options{.timeout = 20, .keepAlive = nullptr};
    const Error error = errorOf([&] {
      comm.batch(parts, options).wait();
      comm.barrier(options).wait();  // rank 0's sends may be through
    });
    const std::string what = error.what();
    EXPECT_NE(what.find("3 elements of int32"), std::string::npos) << what;
    EXPECT_NE(what.find("4 elements of int32"), std::string::npos) << what;
    if (comm.rank() == 1) {
      EXPECT_EQ(wrong, Ints(4, 1)) << "part of it was filled";
    }
  });
}

// Each side posts in an order of its own and waits in another.
TEST(PointToPoint, InterleavedSendsAndReceives) {
  ThreadRanks().run(2, {}, [](Communicator& comm) {
    constexpr std::size_t kCount = 30000;
    const int other = 1 - comm.rank();
    std::vector<Ints> out{message(comm.rank(), other, 0, kCount),
                          message(comm.rank(), other, 1, kCount)};
    std::vector<Ints> in(2, Ints(kCount));
    const auto send = [&](std::size_t i) {
      return comm.send(regionOf(out[i]), DType::Int32, other);
    };
    const auto recv = [&](std::size_t i) {
      return comm.recv(regionOf(in[i]), DType::Int32, other);
    };
    std::vector<Work> works;
    if (comm.rank() == 0) {
      send(0).wait();
      works.push_back(recv(0));
      works.push_back(send(1));
      works.push_back(recv(1));
    } else {
      recv(0).wait();
      works.push_back(recv(1));
      works.push_back(send(0));
      works.push_back(send(1));
    }
    for (const Work& work : works) work.wait();
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(in[static_cast<std::size_t>(i)], message(other, comm.rank(), i, kCount));
    }
  });
}

// Both send first: neither may wait for the other's receive.
TEST(PointToPoint, BothSend64MiBBeforeTheyReceive) {
  ThreadRanks().run(2, {}, [](Communicator& comm) {
    constexpr std::size_t kCount = (std::size_t{64} << 20) / sizeof(std::int32_t);
    const int other = 1 - comm.rank();
    Ints out = message(comm.rank(), other, 5, kCount);
    Ints in(kCount);
    const Work sent = comm.send(regionOf(out), DType::Int32, other);
    const Work received = comm.recv(regionOf(in), DType::Int32, other);
    sent.wait();
    received.wait();
    EXPECT_TRUE(in == message(other, comm.rank(), 5, kCount));
  });
}

// Sources are ranks of the communicator: of 1, 2, 3 of a job, 2 is its rank 1.
TEST(PointToPoint, AnySourceAmongSomeRanksOfAJob) {
  ThreadRanks world;
  ThreadRanks::each(4, [&](int job) {
    if (job == 0) return;
    auto comm =
        Communicator::create(Endpoint::inproc(world.fabric), world.store, "some", {1, 2, 3}, job);
    if (job != 1) {
      for (int k = 0; k < 2; ++k) {
        Ints out(1, job);
        comm->send(regionOf(out), DType::Int32, 0).wait();
      }
      return;
    }
    std::map<int, int> seen;
    std::vector<Ints> in(4, Ints(1));
    std::vector<Work> works;
    for (Ints& buffer : in)
      works.push_back(comm->recv(regionOf(buffer), DType::Int32, kFromAnyRank));
    for (std::size_t i = 0; i < works.size(); ++i) {
      works[i].wait();
      EXPECT_EQ(in[i][0], works[i].source() + 1);
      ++seen[works[i].source()];
    }
    EXPECT_EQ(seen, (std::map<int, int>{{1, 2}, {2, 2}}));
  });
}

// What the others sent before they left is received; what nobody can send any more fails at once.
TEST(PointToPoint, AnySourceWhenAllOthersHaveLeft) {
  for (const bool early : {true, false}) {
    ThreadRanks().run(3, {}, [early](Communicator& comm) {
      Ints v(1, comm.rank());
      if (comm.rank() != 0) {
        comm.send(regionOf(v), DType::Int32, 0).wait();
        return;
      }
      const CallOptions options{.timeout = 20, .keepAlive = nullptr};
      std::vector<Ints> in(3, Ints(1));
      std::vector<Work> works;
      for (Ints& buffer : in) {
        works.push_back(comm.recv(regionOf(buffer), DType::Int32, kFromAnyRank, 0, options));
        if (!early && works.size() < in.size()) works.back().wait();
      }
      works[0].wait();
      works[1].wait();
      EXPECT_EQ(in[0][0] + in[1][0], 3);
      const Error error = errorOf([&] { works[2].wait(); });
      EXPECT_EQ(error.code(), ErrorCode::PeerLost) << error.what();
    });
  }
}

TEST(PointToPoint, AMessageThatNeverComesIsATimeoutThatNamesTheRank) {
  ThreadRanks().run(2, {}, [](Communicator& comm) {
    if (comm.rank() == 1) {
      Ints v(1);
      const Error error = errorOf([&] {
        comm.recv(regionOf(v), DType::Int32, 0, 3, {.timeout = 0.2, .keepAlive = nullptr}).wait();
      });
      EXPECT_EQ(error.code(), ErrorCode::Timeout);
      EXPECT_NE(std::string(error.what()).find("rank 0 has not sent tag 3"), std::string::npos)
          << error.what();
    } else {
      const Error error = errorOf([&] {
        Ints v(1);
        comm.recv(regionOf(v), DType::Int32, 1, 4, {.timeout = 20, .keepAlive = nullptr}).wait();
      });
      EXPECT_EQ(error.code(), ErrorCode::Timeout) << error.what();
    }
  });
}

TEST(PointToPoint, WrongArgumentsHarmNothing) {
  ThreadRanks().run(2, {}, [](Communicator& comm) {
    Ints v(4, 1);
    const auto invalid = [](const std::function<void()>& fn) {
      EXPECT_EQ(errorOf(fn).code(), ErrorCode::InvalidArgument);
    };
    invalid([&] { comm.send(regionOf(v), DType::Int32, 2); });
    invalid([&] { comm.send(regionOf(v), DType::Int32, kFromAnyRank); });
    invalid([&] { comm.recv(regionOf(v), DType::Int32, 0, 1U << 31); });
    invalid([&] { comm.recv(Region(v.data(), 7), DType::Int32, 0); });
    comm.barrier().wait();
  });
}

// Programs that cannot deadlock by MPI's rules: all messages have a place in one global order, and
// every rank issues its own in that order, waiting for some at once and for the others later.
class Program {
 public:
  Program(std::uint64_t seed, int ranks) {
    std::mt19937_64 random(seed);
    const int messages = 1 + static_cast<int>(random() % 24);
    for (int m = 0; m < messages; ++m) {
      Message message;
      message.from = static_cast<int>(random() % static_cast<std::uint64_t>(ranks));
      message.to = static_cast<int>(random() % static_cast<std::uint64_t>(ranks));
      message.tag = static_cast<std::uint32_t>(random() % 3);
      message.count = random() % 5 == 0 ? 3000 + random() % 2000 : random() % 40;
      message.blocksSender = random() % 3 == 0 && message.from != message.to;
      message.blocksReceiver = random() % 3 == 0 && message.from != message.to;
      messages_.push_back(message);
    }
  }

  void run(Communicator& comm) const {
    std::vector<Ints> buffers(messages_.size());
    std::vector<Work> works;
    for (std::size_t m = 0; m < messages_.size(); ++m) {
      const Message& message = messages_[m];
      const int number = static_cast<int>(m);
      if (message.from == comm.rank()) {
        buffers[m] = byway::message(message.from, message.to, number, message.count);
        works.push_back(comm.send(regionOf(buffers[m]), DType::Int32, message.to, message.tag));
        if (message.blocksSender) works.back().wait();
      }
      if (message.to == comm.rank()) {
        receivedIn(buffers, m).resize(message.count);
        works.push_back(
            comm.recv(regionOf(receivedIn(buffers, m)), DType::Int32, message.from, message.tag));
        if (message.blocksReceiver) works.back().wait();
      }
    }
    for (const Work& work : works) work.wait();
    for (std::size_t m = 0; m < messages_.size(); ++m) {
      const Message& message = messages_[m];
      if (message.to != comm.rank()) continue;
      ASSERT_EQ(receivedIn(buffers, m),
                byway::message(message.from, message.to, static_cast<int>(m), message.count));
    }
  }

 private:
  struct Message {
    int from = 0, to = 0;
    std::uint32_t tag = 0;
    std::size_t count = 0;
    bool blocksSender = false, blocksReceiver = false;
  };
  // A message to oneself needs a second buffer.
  Ints& receivedIn(std::vector<Ints>& buffers, std::size_t m) const {
    if (messages_[m].from != messages_[m].to) return buffers[m];
    return own_[m];
  }
  std::vector<Message> messages_;
  mutable std::map<std::size_t, Ints> own_;
};

TEST(PointToPoint, TenThousandRandomProgramsComplete) {
  constexpr int kPrograms = 10000;
  const std::uint64_t seed = 99;
  for (const int ranks : {2, 3, 4}) {
    ThreadRanks().run(ranks, {}, [&](Communicator& comm) {
      for (std::uint64_t p = 0; p < kPrograms / 3 + 1 && !testing::Test::HasFailure(); ++p) {
        SCOPED_TRACE(testing::Message()
                     << "seed " << seed << " ranks " << ranks << " program " << p);
        Program(seed * 1000003 + p, ranks).run(comm);
      }
    });
  }
}

}  // namespace
}  // namespace byway
