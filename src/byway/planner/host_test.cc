// SPDX-License-Identifier: BSD-3-Clause
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "byway/planner/planner.h"
#include "byway/planner/predict_mapped.h"
#include "byway/schedule/bind.h"
#include "byway/schedule/mapped.h"

namespace byway {
namespace {

constexpr double kAll = std::numeric_limits<double>::infinity();
constexpr std::array kCollectives{
    Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter, Collective::AllToAll,
    Collective::Broadcast, Collective::Reduce,    Collective::Gather,        Collective::Scatter};

PlanRequest requestOf(Collective collective, int ranks, std::vector<Group> groups,
                      std::uint64_t bytes, double mappedBytes = kAll) {
  PlanRequest request;
  request.collective = collective;
  request.ranks = ranks;
  request.groups = std::move(groups);
  request.blockBytes.assign(makeShape(collective, ranks, request.groups).blocks.size(), bytes);
  request.mappedBytes = mappedBytes;
  request.stageQuota = std::uint64_t{64} << 20;
  return request;
}

Group everybody(int ranks, int root = 0) {
  Group group{{}, root};
  for (int r = 0; r < ranks; ++r) group.ranks.push_back(r);
  return group;
}

TEST(Host, EveryCollectiveIsMappedAtEverySize) {
  for (const Collective collective : kCollectives) {
    for (const int ranks : {2, 3, 4, 8}) {
      for (const std::uint64_t bytes : {1U, 8U, 4096U, 65536U, 1U << 20, 64U << 20}) {
        const auto plan =
            byway::plan(requestOf(collective, ranks, {everybody(ranks, ranks - 1)}, bytes),
                        hostTopology(ranks));
        const std::string cell = fmt::format("{} n={} {} B", toString(collective), ranks, bytes);
        EXPECT_TRUE(plan.chosen->isMapped()) << cell << ": " << plan.chosen->schedule().name;
        for (int r = 0; r < ranks; ++r) EXPECT_TRUE(plan.chosen->local(r).slotUses.empty()) << cell;
      }
    }
  }
}

TEST(Host, SmallSumsTakeOnePhaseAndLargeOnesShareTheWork) {
  const auto nameOf = [](int ranks, std::uint64_t bytes) {
    return plan(requestOf(Collective::AllReduce, ranks, {everybody(ranks)}, bytes),
                hostTopology(ranks))
        .chosen->schedule()
        .name;
  };
  for (const int ranks : {2, 4, 8}) {
    EXPECT_EQ(nameOf(ranks, 8), "mapped exchange");
    EXPECT_TRUE(nameOf(ranks, 1 << 20).starts_with("mapped two-shot")) << nameOf(ranks, 1 << 20);
  }
}

TEST(Host, LargeDataIsCutSoThatItPassesTheRing) {
  const auto nameOf = [](Collective collective, int ranks, std::uint64_t bytes) {
    return plan(requestOf(collective, ranks, {everybody(ranks)}, bytes), hostTopology(ranks))
        .chosen->schedule()
        .name;
  };
  EXPECT_EQ(nameOf(Collective::AllGather, 2, 256 << 10), "mapped");
  EXPECT_EQ(nameOf(Collective::AllGather, 2, 1 << 20), "mapped P=4");
  EXPECT_EQ(nameOf(Collective::AllGather, 2, 64 << 20), "mapped P=256");
  EXPECT_EQ(nameOf(Collective::AllGather, 2, 128 << 20), "mapped");  // too many pieces
  EXPECT_EQ(nameOf(Collective::Broadcast, 8, 1 << 20), "mapped P=4");
}

// In an exchange all ranks read what the others overwrite when they are done, in place; in a
// two-shot nobody does.
TEST(Host, OnlyAnExchangeNeedsCopies) {
  for (const int ranks : {2, 4}) {
    auto request = requestOf(Collective::AllReduce, ranks, {everybody(ranks)}, 1 << 20);
    request.force = "mapped exchange";
    EXPECT_TRUE(plan(request, hostTopology(ranks)).chosen->publishesCopies());
    request.force = "mapped two-shot";
    EXPECT_FALSE(plan(request, hostTopology(ranks)).chosen->publishesCopies());
    for (const Collective collective : kCollectives) {
      if (collective == Collective::AllReduce) continue;
      const auto other =
          plan(requestOf(collective, ranks, {everybody(ranks)}, 1 << 20), hostTopology(ranks));
      EXPECT_FALSE(other.chosen->publishesCopies()) << toString(collective);
    }
  }
}

TEST(Host, WhatIsSentToManyIsPublishedOnce) {
  const auto chosen =
      plan(requestOf(Collective::AllGather, 4, {everybody(4)}, 64), hostTopology(4)).chosen;
  const auto publications = publicationsOf(chosen->schedule());
  for (const auto count : publications.ofRank) EXPECT_EQ(count, 1U);
  for (const auto readers : publications.readers) EXPECT_EQ(readers, 3U);
  const auto all =
      plan(requestOf(Collective::AllToAll, 4, {everybody(4)}, 64), hostTopology(4)).chosen;
  for (const auto count : publicationsOf(all->schedule()).ofRank) EXPECT_EQ(count, 3U);
}

// In the phases between, a rank publishes a piece for each other rank to sum, and the sum of the
// piece before for all of them: four publications, for six transfers.
TEST(Host, WhatSeveralReadIsOnePublicationOfAPhase) {
  const auto chosen =
      plan(requestOf(Collective::AllReduce, 4, {everybody(4)}, 4 << 20), hostTopology(4)).chosen;
  const Schedule& s = chosen->schedule();
  ASSERT_TRUE(s.name.starts_with("mapped two-shot P=")) << s.name;
  ASSERT_GT(s.phases.size(), 3U);
  const std::vector<std::uint64_t> counts{4 << 20};
  const Binding bound = bind(*chosen, 2, {counts, {}, {}}, 1, 1);
  for (std::size_t p = 1; p + 1 < s.phases.size(); ++p) {
    const Phase& phase = s.phases[p];
    const auto end = phase.firstTransfer + phase.transferCount;
    const auto published = publishedBytes(bound, phase.firstTransfer, end);
    EXPECT_EQ(published.size(), 4U) << p;
    const auto bytes = std::accumulate(published.begin(), published.end(), std::uint64_t{0});
    EXPECT_LE(bytes, kMappedPhaseBytes) << "the ring has room for it";
  }
}

// Of eight ranks all pieces are large enough; of sixteen those that a rank makes fifteen of at a
// time are not.
TEST(Host, OnSharedCoresOnlyLargePiecesAreCut) {
  for (const int ranks : {4, 8, 16}) {
    for (const Collective collective : kCollectives) {
      auto request = requestOf(collective, ranks, {everybody(ranks)}, 2 << 20);
      request.coresForAll = false;
      const auto name = plan(request, hostTopology(ranks)).chosen->schedule().name;
      const bool isForEach =
          collective == Collective::AllToAll || collective == Collective::Scatter ||
          collective == Collective::ReduceScatter || collective == Collective::AllReduce;
      const bool isCut = ranks < 16 || !isForEach;
      EXPECT_EQ(name.find(" P=") != std::string::npos, isCut) << toString(collective) << name;
    }
  }
}

TEST(Host, NothingIsMappedWhereItCannotBe) {
  const auto mapped = [](const PlanRequest& request, const Topology& topology) {
    return plan(request, topology).chosen->isMapped();
  };
  const auto cell = [](double mappedBytes, std::uint64_t bytes) {
    return requestOf(Collective::AllGather, 4, {everybody(4)}, bytes, mappedBytes);
  };
  EXPECT_FALSE(mapped(cell(0, 64), hostTopology(4)));
  EXPECT_FALSE(mapped(cell(kAll, 64), meshTopology(4, 1e9)));
  EXPECT_FALSE(mapped(cell(kAll, 64), switchTopology(4, 1e9)));
  // Where ranks cannot read each other's memory only what fits goes into the board.
  EXPECT_TRUE(mapped(cell(1024, 64), hostTopology(4)));
  EXPECT_FALSE(mapped(cell(1024, 4096), hostTopology(4)));
}

TEST(Host, GroupsInOneCallAndGroupsThatDiffer) {
  for (const Collective collective : kCollectives) {
    const std::vector<Group> groups{{{0, 3}, 1}, {{5, 1, 2}, 0}, {{4}, 0}};
    const auto chosen = plan(requestOf(collective, 6, groups, 4096), hostTopology(6)).chosen;
    EXPECT_TRUE(chosen->isMapped()) << toString(collective);
  }
}

}  // namespace
}  // namespace byway
