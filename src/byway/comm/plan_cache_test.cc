// SPDX-License-Identifier: BSD-3-Clause
#include "byway/comm/plan_cache.h"

#include <gtest/gtest.h>

#include "byway/planner/packing.h"

namespace byway {
namespace {

struct Asked {
  std::vector<Group> groups{{{0, 1}, 0}, {{2, 3}, 0}, {{4, 5}, 0}, {{6, 7}, 0}};
  std::vector<std::uint64_t> counts;
  PlanQuery query(Collective collective = Collective::AllReduce) const {
    return {collective, groups, counts, 4, 4, 1};
  }
};

TEST(SizeClass, IsTheLowerEdgeOfAnEighthOfAnOctave) {
  for (const std::uint64_t small : {0, 1, 7, 15}) EXPECT_EQ(sizeClass(small), small);
  EXPECT_EQ(sizeClass(16), 16U);
  EXPECT_EQ(sizeClass(17), 16U);
  EXPECT_EQ(sizeClass(1000), 960U);
  EXPECT_EQ(sizeClass((std::uint64_t{1} << 40) + 1), std::uint64_t{1} << 40);
}

TEST(PlanCache, SizesOfOneClassShareAPlan) {
  PlanCache cache(meshTopology(8, 1e9), "");
  Asked asked;
  asked.counts.assign(4, 1000000);
  const auto plan = cache.get(asked.query());
  asked.counts.assign(4, 1000001);
  EXPECT_EQ(cache.get(asked.query()), plan);
  asked.counts.assign(4, 2000000);
  EXPECT_NE(cache.get(asked.query()), plan);
  EXPECT_EQ(cache.size(), 2U);
}

// 634:560:553:479 is irregular. At 1 GB/s the direct way of 4 MB takes 4 ms: far too little for an
// LP.
TEST(PlanCache, ACallSolvesAnLpOnlyWhereItPays) {
  PlanCache cache(meshTopology(8, 1e9), "");
  Asked asked;
  asked.counts = {1000000, 883000, 872000, 755000};
  const std::uint64_t before = packingSolves();
  EXPECT_FALSE(cache.get(asked.query())->relayed());
  EXPECT_FALSE(cache.look(asked.query())->relayed());
  EXPECT_EQ(packingSolves(), before);

  // Ahead of the calls it may take its time, and the calls find it.
  const auto prepared = cache.prepare(asked.query());
  EXPECT_TRUE(prepared->relayed());
  const std::uint64_t after = packingSolves();
  EXPECT_GT(after, before);
  EXPECT_EQ(cache.get(asked.query()), prepared);
  EXPECT_EQ(packingSolves(), after);

  // Two gigabytes take two seconds: now the call itself may.
  for (std::uint64_t& count : asked.counts) count *= 500;
  EXPECT_TRUE(cache.get(asked.query())->relayed());
  EXPECT_GT(packingSolves(), after);
}

TEST(PlanCache, OneTemplateServesAllCountsOfARanksOwn) {
  PlanCache cache(meshTopology(8, 1e9), "S1 K=4");  // no route can be forced
  Asked asked;
  asked.groups = {{{0, 1, 2}, 0}};
  PlanQuery query{Collective::AllToAll, asked.groups, {}, 4, 4, 1, true};
  asked.counts.assign(9, 0);
  query.blockCounts = asked.counts;
  const auto plan = cache.get(query);
  EXPECT_TRUE(plan->chosen->isTemplate());
  EXPECT_FALSE(plan->relayed());
  asked.counts = {1, 2, 3, 400000000, 0, 0, 7, 0, 0};
  EXPECT_EQ(cache.get(query), plan);
  EXPECT_EQ(cache.size(), 1U);
}

TEST(PlanCache, LookingKeepsNothing) {
  PlanCache cache(meshTopology(8, 1e9), "");
  Asked asked;
  asked.counts.assign(4, 5000000);
  EXPECT_TRUE(cache.look(asked.query())->relayed());
  EXPECT_EQ(cache.size(), 0U);
}

}  // namespace
}  // namespace byway
