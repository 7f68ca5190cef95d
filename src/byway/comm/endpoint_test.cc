// SPDX-License-Identifier: BSD-3-Clause
#include "byway/comm/endpoint.h"

#include <gtest/gtest.h>

#include "byway/comm/threads_test_util.h"
#include "byway/planner/topology.h"

namespace byway {
namespace {

TEST(Pace, IsARateOrATopology) {
  const Pace rate = parsePace("20M,50");
  EXPECT_EQ(rate.bytesPerSecond, 20e6);
  EXPECT_DOUBLE_EQ(rate.latency, 50e-6);
  EXPECT_EQ(rate.links, nullptr);
  const Pace mesh = parsePace("mesh:4@10M,50"), other = parsePace("switch:4@10M,50");
  ASSERT_NE(mesh.links, nullptr);
  EXPECT_EQ(mesh.links->ranks, 4);
  EXPECT_EQ(mesh.links->link(3, 1), 10e6);
  EXPECT_EQ(other.links->ingress[2], 10e6);
  EXPECT_EQ(mesh, parsePace("mesh:4@10M,50"));
  EXPECT_FALSE(mesh == other || mesh == rate || mesh == Pace{});
  EXPECT_NE(mesh.text(), other.text());
}

TEST(Pace, SaysWhatIsWrong) {
  for (const char* text : {"fast", "20M,soon", "mesh:x", "./no-such-file.json", "host"}) {
    EXPECT_EQ(errorOf([&] { parsePace(text); }).code(), ErrorCode::InvalidArgument) << text;
  }
}

std::unique_ptr<Communicator> join(ThreadRanks& world, const Pace& pace, int rank, int ranks) {
  std::vector<int> all;
  for (int r = 0; r < ranks; ++r) all.push_back(r);
  return Communicator::create(Endpoint::inproc(world.fabric, pace), world.store, "paced", all,
                              rank);
}

TEST(Pace, LinksAreThoseOfTheRanks) {
  Topology topology = meshTopology(3, 1e9);
  topology.links[0 * 3 + 1] = 1e6;  // 0 to 1: 20 ms for 20 kB
  topology.links[2 * 3 + 1] = 0;
  const Pace pace = Pace::of(topology);
  ThreadRanks world;
  ThreadRanks::each(3, [&](int rank) {
    const auto comm = join(world, pace, rank, 3);
    std::vector<std::byte> data(20'000, std::byte{7}), got(data.size());
    const auto start = SteadyClock::instance().now();
    const auto took = [&] { return SteadyClock::instance().now() - start; };
    if (rank == 0) {
      comm->send(regionOf(data), DType::UInt8, 1).wait();
      EXPECT_GE(took(), 0.02);
    } else if (rank == 1) {
      comm->recv(regionOf(got), DType::UInt8, 0).wait();
      EXPECT_GE(took(), 0.019);
      EXPECT_EQ(got, data);
      EXPECT_EQ(errorOf([&] { comm->recv(regionOf(got), DType::UInt8, 2).wait(); }).code(),
                ErrorCode::PeerLost);
    } else {
      EXPECT_EQ(errorOf([&] { comm->send(regionOf(data), DType::UInt8, 1).wait(); }).code(),
                ErrorCode::PeerLost);
    }
  });
}

TEST(Pace, APartHasTheLinksOfItsRanks) {
  Topology topology = meshTopology(3, 1e9);
  topology.links[2 * 3 + 0] = 1e6;  // 2 to 0: 20 ms for 20 kB
  const Pace pace = Pace::of(topology);
  ThreadRanks world;
  ThreadRanks::each(2, [&](int rank) {
    CommunicatorOptions options;
    options.topology = "mesh:3@1G";
    options.topologyRanks = {2, 0};
    const auto comm = Communicator::create(Endpoint::inproc(world.fabric, pace), world.store,
                                           "part", {0, 1}, rank, options);
    std::vector<std::byte> data(20'000, std::byte{7}), got(data.size());
    const auto start = SteadyClock::instance().now();
    if (rank == 0) {
      comm->send(regionOf(data), DType::UInt8, 1).wait();
    } else {
      comm->recv(regionOf(got), DType::UInt8, 0).wait();
      EXPECT_EQ(got, data);
    }
    EXPECT_GE(SteadyClock::instance().now() - start, 0.019);
  });
  CommunicatorOptions options;
  options.topologyRanks = {2};
  const Error error = errorOf([&] {
    Communicator::create(Endpoint::inproc(world.fabric, pace), world.store, "one", {0, 1}, 0,
                         options);
  });
  EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
  EXPECT_NE(std::string(error.what()).find("topologyRanks"), std::string::npos) << error.what();
}

TEST(Pace, MustHaveAllRanks) {
  ThreadRanks world;
  ThreadRanks::each(3, [&](int rank) {
    const Error error = errorOf([&] { join(world, Pace::of(meshTopology(2, 1e9)), rank, 3); });
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    EXPECT_NE(std::string(error.what()).find("rank 2"), std::string::npos) << error.what();
  });
}

}  // namespace
}  // namespace byway
