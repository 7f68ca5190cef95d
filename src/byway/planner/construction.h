// SPDX-License-Identifier: BSD-3-Clause
// What a construction is to the planner: a list of candidates for a cell, each with its value known
// before it is built. Adding one is one file, its test, and one line in constructions.h
// (docs/adding-an-algorithm.md).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "byway/planner/routes.h"
#include "byway/planner/topology.h"

namespace byway {

// A call, reduced to what the choice of a schedule may depend on.
struct Cell {
  Collective collective = Collective::AllReduce;
  int ranks = 0;
  // All groups of the call in its order, so that blocks are numbered as in the schedule's shape.
  // Groups of one member are local: constructions look at live() alone, emit() does the rest.
  std::vector<Group> groups;
  std::vector<double> blockBytes;  // per block of makeShape(collective, ranks, groups)
  double partialWeight = 1;        // accumulator bytes / element bytes
  // The part of the helpers' links that the call can count on; less than 1 where other groups'
  // calls are under way at the same time (PlanRequest::liveGroups).
  double helperShare = 1;
  // Bytes that a rank may publish for the others to read (PlanRequest::mappedBytes); 0: nothing.
  double mappedBytes = 0;
  bool coresForAll = true;  // PlanRequest
  const Topology* topology = nullptr;

  std::vector<int> live() const;  // indices of the groups of at least two members
  // Regular, of the live groups: uniform mesh, groups of one size, blocks of one size.
  bool regular() const;
  bool single() const { return live().size() == 1; }
  bool coversAllRanks() const;                  // the live groups do
  std::vector<int> helpersOf(int group) const;  // ranks outside the group, ascending
};

struct Candidate {
  std::string name;  // "S3 K=24"
  bool direct = false;
  int stages = 0;  // K
  // Value: time on links of rate 1 in units of one block (of the largest), as the construction's
  // formula gives it, exact for regular cells.
  double value = 0;
  double linkRate = 0;      // bytes/s of the links of rate 1; 0: the slowest between members
  int hops = 1;             // longest chain of transfers that one byte passes
  int messagesPerRank = 0;  // largest number of messages that a rank sends
  std::function<Schedule()> build;
};

struct Construction {
  const char* id;      // "S3"
  const char* covers;  // one line for `byway plan --constructions`
  std::vector<Candidate> (*candidates)(const Cell& cell);
};

// All of them, direct ones first.
std::span<const Construction> constructions();

}  // namespace byway
