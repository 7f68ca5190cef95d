// SPDX-License-Identifier: BSD-3-Clause
// Random calls, their data, and what must come out: for tests that sweep schedules.
#pragma once

#include <complex>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "byway/comm/virtual_world.h"
#include "byway/planner/construction.h"
#include "byway/schedule/interpreter.h"

namespace byway {

struct RandomCall {
  Collective collective = Collective::AllReduce;
  int ranks = 0;
  std::vector<Group> groups;
  DType dtype = DType::Float32;
  ReduceOp op = ReduceOp::Sum;
  std::complex<double> factor{1.0, 0.0};
  std::vector<std::uint64_t> blockCounts;
  std::vector<RankMemory> memory;  // inputs filled in; outputs hold a pattern
  std::string describe() const;
};

// A regular call; rank counts are even for shard 0 and odd for shard 1, 2 to 16.
RandomCall drawCall(std::mt19937_64& random, int shard);
// A schedule of any construction that serves the call.
std::optional<Schedule> drawSchedule(std::mt19937_64& random, const RandomCall& call);
// Counts, contents and aliasing of every rank.
void drawData(std::mt19937_64& random, const VerifiedSchedule& schedule, RandomCall& call);
// Contents and aliasing for counts that are set.
void drawDataOf(std::mt19937_64& random, const VerifiedSchedule& schedule, RandomCall& call);
bool usesHelpers(const VerifiedSchedule& schedule);

std::vector<RankMemory> interpretCall(const VerifiedSchedule& schedule, const RandomCall& call);
// Compares every output with a loop over the inputs, and inputs with what they were.
void expectOracle(const VerifiedSchedule& schedule, const RandomCall& call,
                  const std::vector<RankMemory>& result);
// Executes with randomly cut segments and compares all memory with the interpreter's.
void expectExecuted(std::mt19937_64& random, VirtualWorld& world,
                    const std::shared_ptr<const VerifiedSchedule>& schedule, const RandomCall& call,
                    const std::vector<RankMemory>& interpreted);

// The same for one rank of several processes; `random` gives all ranks the same cuts.
void executeRank(std::mt19937_64& random, Engine& engine, Channel& channel,
                 const std::shared_ptr<const VerifiedSchedule>& schedule, const RandomCall& call,
                 const std::vector<RankMemory>& interpreted);

}  // namespace byway
