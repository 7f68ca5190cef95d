// SPDX-License-Identifier: BSD-3-Clause
// What the builder files share. A builder cuts each block into slices (sizes are fractions of the
// block), gives them routes and stages, and lets emit() do the rest.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "byway/planner/construction.h"

namespace byway {

// Numbers of stages that are tried. Stages that grow by a factor end long after a few.
inline constexpr std::array kUniformStages{2, 3, 4, 6, 8, 12, 16, 24, 32, 48};
inline constexpr std::array kGrowingStages{2, 3, 4, 5, 6};
// Numbers of pieces for what gains from them only by overlapping sums and latencies.
inline constexpr std::array kPieces{1, 2, 4, 8};

// Slots per lane for data that is only passed on: three hide a stage's latency, unless a helper
// would then keep more than a tenth of a message. `slice`: one slot, `lanes` of them meet at a
// helper, both for a message of size 1. (Sums always get three: in place, two lose 6 %.)
int moveRing(double slice, double lanes);

// The factor by which partial sums weigh more than raw data; a pair of members forms none.
inline double partialWeightOf(const Cell& cell, int groupSize) {
  return groupSize > 2 ? cell.partialWeight : 1.0;
}

class SliceList {
 public:
  SliceList(const Cell& cell, std::string name, int ring = 3,
            Protocol protocol = Protocol::Messages);

  const Shape& shape() const { return shape_; }
  const Group& group(int g) const { return shape_.groups[static_cast<std::size_t>(g)]; }
  int block(int g, int source = 0, int destination = 0) const;
  int newLane() { return lanes_++; }

  // Both return the slice, to be given its hops.
  Slice& move(int block, double size, int lane, bool direct = false);
  Slice& sumAt(int at, int block, double size, int lane, bool direct = false);
  Slice& sumEverywhere(int block, double size, int lane);

  Schedule emit() &&;

 private:
  Slice& add(SliceKind kind, int block, double size, int lane, bool direct);
  Shape shape_;
  std::vector<int> firstBlocks_;
  EmitOptions options_;
  std::vector<Slice> slices_;
  int lanes_ = 0;
};

// The members of a group without one (a rank).
std::vector<int> without(const std::vector<int>& ranks, int rank);

// Every member but `to` sends it its contribution in `stage`.
void contribute(Slice& slice, const Group& group, int to, int stage);
// `from` sends to every member but itself and `skip`.
void distribute(Slice& slice, const Group& group, int from, int stage, int skip = -1);

// A candidate whose build keeps its own copy of the cell.
using Build = void (*)(SliceList& list, const Cell& cell, int number);
struct CandidateFacts {
  bool direct = false;
  int stages = 0;
  double value = 0;
  int hops = 1;
  int messages = 0;
  int ring = 3;
  Protocol protocol = Protocol::Messages;
};
Candidate makeCandidate(const std::shared_ptr<const Cell>& cell, std::string name, int number,
                        const CandidateFacts& facts, Build build);

// What direct and host schedules are made of (direct.cc): every member sums all contributions; each
// sums a share, then passes it on; each owner sums its block; blocks move to where they belong.
void buildExchange(SliceList& list, const Cell& cell, int pieces);
void buildTwoShot(SliceList& list, const Cell& cell, int pieces);
void buildOwned(SliceList& list, const Cell& cell, int pieces);
void buildMoves(SliceList& list, const Cell& cell, int pieces);

// Adds it unless the one before, of fewer stages, is within half a per cent.
void addIfFaster(std::vector<Candidate>& candidates, Candidate candidate);

// Sum of the sizes first * ratio^j, j < count.
double geometricSum(double first, double ratio, int count);

}  // namespace byway
