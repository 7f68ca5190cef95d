// SPDX-License-Identifier: BSD-3-Clause
// Random schedules of all constructions: verified, interpreted against a plain oracle, and executed
// over inproc against the interpreter, bit for bit.
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <unordered_set>

#include <gtest/gtest.h>

#include "byway/comm/random_call_test_util.h"
#include "byway/comm/virtual_world.h"

namespace byway {
namespace {

constexpr int kSchedulesPerShard = 10200;
constexpr int kEachCollective = 260;  // per shard

class Counts {
 public:
  void add(const RandomCall& call, bool relays) {
    ++byCollective_[static_cast<std::size_t>(call.collective)];
    ++total_;
    if (call.ranks >= 6 && relays) ++largeRelayed_;
  }
  void check() const {
    EXPECT_GE(total_, kSchedulesPerShard);
    EXPECT_GE(2 * largeRelayed_, total_) << "half must have six ranks or more and a relay";
    for (std::size_t c = 0; c < byCollective_.size(); ++c) {
      EXPECT_GE(byCollective_[c], kEachCollective) << toString(static_cast<Collective>(c));
    }
    std::printf("%d schedules, %d of them with n >= 6 and a relay; by collective:", total_,
                largeRelayed_);
    for (const int n : byCollective_) std::printf(" %d", n);
    std::printf("\n");
  }

 private:
  std::array<int, 8> byCollective_{};
  int total_ = 0, largeRelayed_ = 0;
};

std::uint64_t seedOf(int shard) {
  const char* text = std::getenv("BYWAY_TEST_SEED");
  const std::uint64_t base = text != nullptr ? std::strtoull(text, nullptr, 10) : 20261129;
  return base * 2 + static_cast<std::uint64_t>(shard);
}

// Shards take even and odd rank counts, so no schedule is in both.
void runShard(int shard) {
  const std::uint64_t seed = seedOf(shard);
  std::printf("seed %llu (BYWAY_TEST_SEED sets its half)\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  std::map<int, std::unique_ptr<VirtualWorld>> worlds;
  std::unordered_set<std::uint64_t> seen;
  Counts counts;
  for (int attempt = 0; static_cast<int>(seen.size()) < kSchedulesPerShard; ++attempt) {
    ASSERT_LT(attempt, 60 * kSchedulesPerShard) << "only " << seen.size() << " different schedules";
    RandomCall call = drawCall(random, shard);
    auto built = drawSchedule(random, call);
    if (!built || !seen.insert(hashOf(*built)).second) continue;
    SCOPED_TRACE(testing::Message() << "seed " << seed << " attempt " << attempt << ": "
                                    << call.describe() << ", " << built->name);
    const auto schedule = verify(std::move(*built));
    counts.add(call, usesHelpers(*schedule));
    drawData(random, *schedule, call);
    auto interpreted = interpretCall(*schedule, call);
    expectOracle(*schedule, call, interpreted);
    if (testing::Test::HasFailure()) return;
    auto& world = worlds[call.ranks];
    if (!world) world = std::make_unique<VirtualWorld>(meshTopology(call.ranks, 1e9, 1e-6));
    expectExecuted(random, *world, schedule, call, interpreted);
    if (testing::Test::HasFailure()) return;
  }
  counts.check();
}

TEST(Property, SchedulesOfEvenRankCounts) { runShard(0); }
TEST(Property, SchedulesOfOddRankCounts) { runShard(1); }

}  // namespace
}  // namespace byway
