// SPDX-License-Identifier: BSD-3-Clause
// The arguments by which `byway plan` and `byway limits` describe a call.
#pragma once

#include <string>

#include "byway/base/types.h"
#include "byway/planner/planner.h"
#include "byway/planner/topology.h"

namespace CLI {
class App;
}

namespace byway::tools {

struct CallArguments {
  std::string collective, groups, bytes = "64Mi", dtype = "float32", op = "sum", topology, route;
  int active = 0, ranks = 0, root = 0;
  bool fused = false;
};

struct DescribedCall {
  PlanRequest request;
  Topology topology;
  DType dtype = DType::Float32;
  ReduceOp op = ReduceOp::Sum;
  std::vector<std::uint64_t> bytes;  // per group, the collective's unit
};

void addCallArguments(CLI::App& sub, CallArguments& arguments);

// Throws where none is given; `instead` is the option that needs none.
void requireCollective(const CallArguments& arguments, const char* instead);

// `fallback`: the topology where neither the option nor BYWAY_TOPOLOGY names one ("mesh" stands for
// a mesh of all ranks). Throws Error{InvalidArgument} naming the option.
DescribedCall describeCall(const CallArguments& arguments, const std::string& fallback);

// The number of ranks that a preset or file states, and 8 where it states none.
Topology describedTopology(const std::string& text, int ranks, const std::string& fallback);

// Bytes of each block of a shape whose groups have the given units.
std::vector<std::uint64_t> blockBytesOf(Collective collective, const std::vector<Group>& groups,
                                        const std::vector<std::uint64_t>& bytes);
double partialWeightOf(Collective collective, DType dtype, ReduceOp op);

}  // namespace byway::tools
