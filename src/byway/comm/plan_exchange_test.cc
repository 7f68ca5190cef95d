// SPDX-License-Identifier: BSD-3-Clause
// Plans of the LP: made by one rank, the same on all.
#include <array>
#include <atomic>

#include <gtest/gtest.h>

#include "byway/comm/plan_data.h"
#include "byway/comm/threads_test_util.h"
#include "byway/planner/packing.h"

namespace byway {
namespace {

using Floats = std::vector<float>;

// Four pairs with counts in the proportion 634:560:553:479: no formula covers them.
std::vector<CallGroup> unequalPairs(std::uint64_t unit) {
  std::vector<CallGroup> groups;
  for (int g = 0; g < 4; ++g) {
    constexpr std::array<std::uint64_t, 4> kParts{634, 560, 553, 479};
    groups.push_back({{2 * g, 2 * g + 1}, 0, kParts[static_cast<std::size_t>(g)] * unit, {}});
  }
  return groups;
}

CommunicatorOptions onMesh(const std::string& topology, const std::string& route = "") {
  CommunicatorOptions options;
  options.topology = topology;
  options.route = route;
  return options;
}

struct Sum {
  Floats in, out;
  Work work;
};

// One fused allreduce; rank r of call c gives r + c + i.
Sum begin(Communicator& comm, const std::vector<CallGroup>& groups, int call) {
  const auto count = groups[static_cast<std::size_t>(comm.rank() / 2)].count;
  Sum sum{Floats(count), Floats(count, -1), {}};
  for (std::size_t i = 0; i < count; ++i) {
    sum.in[i] = static_cast<float>(comm.rank() + call) + static_cast<float>(i % 1000);
  }
  sum.work = comm.fused(Collective::AllReduce, groups, {regionOf(sum.in), regionOf(sum.out)},
                        DType::Float32);
  return sum;
}

void expectRight(const Communicator& comm, const Sum& sum, int call) {
  const auto base = static_cast<float>(4 * (comm.rank() / 2) + 1 + 2 * call);
  for (std::size_t i = 0; i < sum.out.size(); ++i) {
    ASSERT_EQ(sum.out[i], base + 2 * static_cast<float>(i % 1000))
        << "call " << call << " at " << i;
  }
}

// What one rank solves for one plan: with helpers, and among members only.
constexpr std::uint64_t kSolvesOfOnePlan = 2;

TEST(PlanExchange, PreparedPlansAreMadeOnce) {
  const auto groups = unequalPairs(100);
  std::array<std::atomic<std::uint64_t>, 8> hashes{};
  const std::uint64_t before = packingSolves();
  ThreadRanks().run(8, onMesh("mesh:8@1G"), [&](Communicator& comm) {
    const auto info = comm.prepare(Collective::AllReduce, groups, DType::Float32);
    EXPECT_TRUE(info.relayed);
    EXPECT_GT(info.directPredicted, info.predicted);
    hashes[static_cast<std::size_t>(comm.rank())] = info.hash;
    EXPECT_EQ(comm.planFor(Collective::AllReduce, groups, DType::Float32).hash, info.hash);
    const Sum sum = begin(comm, groups, 3);
    sum.work.wait();
    expectRight(comm, sum, 3);
    EXPECT_GT(comm.stagePeak(), 0U);
  });
  EXPECT_LE(packingSolves() - before, kSolvesOfOnePlan);
  for (const auto& hash : hashes) EXPECT_EQ(hash, hashes[0]);
}

// At 1 MB/s an LP pays for the call itself. Several calls begin before the plan has come.
TEST(PlanExchange, CallsStartWhenTheirPlanComes) {
  const auto groups = unequalPairs(300);
  const std::uint64_t before = packingSolves();
  ThreadRanks().run(8, onMesh("mesh:8@1M"), [&](Communicator& comm) {
    std::vector<Sum> sums;
    for (int call = 0; call < 3; ++call) sums.push_back(begin(comm, groups, call));
    comm.barrier().wait();
    for (int call = 2; call >= 0; --call) {
      sums[static_cast<std::size_t>(call)].work.wait();
      expectRight(comm, sums[static_cast<std::size_t>(call)], call);
    }
    const Sum later = begin(comm, groups, 9);
    later.work.wait();
    expectRight(comm, later, 9);
    EXPECT_TRUE(comm.planFor(Collective::AllReduce, groups, DType::Float32).relayed);
  });
  EXPECT_LE(packingSolves() - before, kSolvesOfOnePlan);
}

// The maker finds no plan: all ranks hear why, and the communicator goes on.
TEST(PlanExchange, WhatCannotBePlannedFailsEverywhere) {
  const auto groups = unequalPairs(1);
  ThreadRanks().run(8, onMesh("mesh:8@1G", "packing K=999"), [&](Communicator& comm) {
    for (int call = 0; call < 2; ++call) {
      const Error error = errorOf([&] { begin(comm, groups, call).work.wait(); });
      EXPECT_EQ(error.code(), ErrorCode::InvalidArgument) << error.what();
      EXPECT_NE(std::string(error.what()).find("packing K=999"), std::string::npos) << error.what();
    }
  });
}

// A wrong call that would have been the first leaves nothing behind.
TEST(PlanExchange, AMistakeOfAllRanksHarmsNothing) {
  const auto groups = unequalPairs(300);
  ThreadRanks().run(8, onMesh("mesh:8@1M"), [&](Communicator& comm) {
    Floats small(1);
    EXPECT_EQ(errorOf([&] {
                comm.fused(Collective::AllReduce, groups, {regionOf(small), regionOf(small)},
                           DType::Float32);
              }).code(),
              ErrorCode::InvalidArgument);
    const Sum sum = begin(comm, groups, 1);
    sum.work.wait();
    expectRight(comm, sum, 1);
  });
}

TEST(PlanData, IsReadBackAndChecked) {
  PlanRequest request;
  request.collective = Collective::AllGather;
  request.ranks = 4;
  request.groups = {{{0, 1}, 0}};
  request.blockBytes = {100000000, 90000000};
  const Plan made = plan(request, meshTopology(4, 1e9));
  ASSERT_TRUE(made.relayed());
  const auto bytes = encodePlan(made);
  const Plan read = decodePlan(bytes, request);
  EXPECT_EQ(read.chosen->hash(), made.chosen->hash());
  EXPECT_EQ(read.direct->hash(), made.direct->hash());
  EXPECT_EQ(read.predicted, made.predicted);

  const auto refused = [](std::span<const std::byte> data, const PlanRequest& asked) {
    return errorOf([&] { (void)decodePlan(data, asked); }).code();
  };
  for (const std::size_t size : {std::size_t{0}, std::size_t{39}, bytes.size() - 1}) {
    EXPECT_EQ(refused(std::span(bytes).first(size), request), ErrorCode::InvalidArgument) << size;
  }
  PlanRequest other = request;
  other.groups = {{{0, 2}, 0}};
  EXPECT_EQ(refused(bytes, other), ErrorCode::InvalidArgument);
  EXPECT_EQ(refused(encodeRefusal(Error(ErrorCode::Unsupported, "why")), request),
            ErrorCode::Unsupported);
}

}  // namespace
}  // namespace byway
