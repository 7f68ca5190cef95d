// SPDX-License-Identifier: BSD-3-Clause
// One fault in one collective among ranks that are processes: what goes wrong, and the calls with
// their expected values. The harness and the tests are in faults_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "byway/comm/communicator.h"

namespace byway::faults {

enum class Fault : std::uint8_t {
  Killed,
  ForkedAndKilled,  // and the child goes on
  Stopped,
  Late,
  NeverCalls,
  OtherCount,
  OtherDType,
  OtherOp,
  OtherCollective,
  Aborts,
};
constexpr int kFaults = 10;
constexpr int kCollectives = 9;  // the ninth is the barrier

struct Cell {
  Fault fault = Fault::Killed;
  int collective = 0;
  bool isRelayed = false;  // a group of `members`, the other ranks help; else all are members
  int members = 2;
  int victim = 0;  // rank in the cell's communicator
  std::uint64_t count = 0;
  std::uint32_t delayUs = 0;  // from when all ranks are at work to the kill
  bool kills() const { return fault == Fault::Killed || fault == Fault::ForkedAndKilled; }
  bool isBarrier() const { return collective == kCollectives - 1; }
  std::string describe() const;
};

// What one rank passes and gets.
class CellCalls {
 public:
  CellCalls(Communicator& communicator, const Cell& cell);
  // Call number `call`; with `odd` as the victim makes it. Data depend on call, rank and index.
  Work start(int call, bool odd, Seconds timeout);
  // "" when the outputs of call `call` are right.
  std::string check(int call) const;
  bool isRelayed() const;

 private:
  struct Spec {
    Collective collective;
    DType dtype;
    ReduceOp op;
    std::uint64_t count;
  };
  Spec spec(bool odd) const;
  CallGroup group(std::uint64_t count) const;
  std::uint64_t inputCount(const Spec& spec) const;
  std::uint64_t outputCount(const Spec& spec) const;
  std::int32_t expected(int call, std::uint64_t index) const;

  Communicator& communicator_;
  Cell cell_;
  int members_, self_;  // self: position among the members, or -1
  std::vector<std::int32_t> input_, output_;
};

}  // namespace byway::faults
