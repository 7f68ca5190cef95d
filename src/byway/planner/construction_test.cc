// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/construction.h"

#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include "byway/planner/construction_testing.h"
#include "byway/schedule/interpreter.h"

namespace byway {
namespace {

using Element = std::uint64_t;

TEST(Cell, LooksAtLiveGroupsOnly) {
  Cell cell = cellOf({Collective::AllGather, 8, 2, 2});
  EXPECT_TRUE(cell.regular());
  EXPECT_FALSE(cell.single());
  EXPECT_FALSE(cell.coversAllRanks());
  const int lonely = cell.groups[1].ranks[0];
  cell.groups[1].ranks = {lonely};
  cell.blockBytes = {64, 64, 8};  // the lonely block does not count
  EXPECT_TRUE(cell.regular());
  EXPECT_TRUE(cell.single());
  EXPECT_EQ(cell.live(), std::vector<int>{0});
  EXPECT_EQ(cell.helpersOf(0).size(), 6U);
  cell.blockBytes = {64, 32, 8};
  EXPECT_FALSE(cell.regular());
}

TEST(Cell, IsRegularOnAUniformMeshWithGroupsOfOneSize) {
  Cell cell = cellOf({Collective::AllReduce, 8, 4, 2});
  EXPECT_TRUE(cell.coversAllRanks());
  const Topology mesh = meshTopology(8, 1e9);
  cell.topology = &mesh;
  EXPECT_TRUE(cell.regular());
  const Topology host = hostTopology(8);
  cell.topology = &host;
  EXPECT_FALSE(cell.regular());
  cell.topology = nullptr;
  cell.groups[1].ranks.pop_back();
  EXPECT_FALSE(cell.regular());
  cell.groups.clear();
  EXPECT_FALSE(cell.regular());
}

TEST(Constructions, AreListedOnceWithDirectFirst) {
  std::set<std::string> ids;
  for (const Construction& c : constructions()) {
    EXPECT_TRUE(ids.insert(c.id).second);
    EXPECT_FALSE(std::string(c.covers).empty());
  }
  EXPECT_STREQ(constructions()[0].id, "direct");
}

TEST(Constructions, CandidatesOfACellHaveDifferentNamesAndDirectOnesComeFirst) {
  for (int c = 0; c <= static_cast<int>(Collective::Gather); ++c) {
    for (const int groups : {1, 2}) {
      const Cell cell = cellOf({static_cast<Collective>(c), 8, 4, groups});
      std::set<std::string> names;
      bool relayed = false;
      for (const Construction& construction : constructions()) {
        for (const Candidate& candidate : construction.candidates(cell)) {
          EXPECT_TRUE(names.insert(candidate.name).second) << candidate.name;
          EXPECT_FALSE(candidate.direct && relayed) << candidate.name;
          relayed = !candidate.direct;
        }
      }
    }
  }
}

TEST(Constructions, NothingToDoHasNoCandidatesThatFail) {
  Cell cell = cellOf({Collective::AllReduce, 4, 1, 3});
  for (const Construction& construction : constructions()) {
    for (const Candidate& candidate : construction.candidates(cell)) {
      EXPECT_TRUE(violations(candidate.build()).empty()) << candidate.name;
    }
  }
}

// --- Values: every candidate against a plain loop, apart and in place
// -----------------------------

constexpr std::uint64_t kCount = 1003;  // elements of each block: shares end at odd places

Element valueAt(int rank, std::size_t block, std::uint64_t i) {
  return static_cast<Element>(rank + 1) * 1'000'003 + block * 7919 + i * 31;
}

class Run {
 public:
  Run(std::shared_ptr<const VerifiedSchedule> schedule, bool inPlace)
      : schedule_(std::move(schedule)), shape_(schedule_->schedule().shape) {
    for (int r = 0; r < shape_.ranks; ++r) memory_.push_back(memoryOf(r, inPlace));
  }

  void run() {
    const std::vector<std::uint64_t> counts(shape_.blocks.size(), kCount);
    interpret(
        *schedule_, counts, sizeof(Element), sizeof(Element),
        [](void* to, Width, std::span<const InterpreterInput> inputs, std::size_t elements,
           std::uint32_t) {
          std::vector<Element> sum(elements);
          for (const InterpreterInput& in : inputs) {
            const auto* values = static_cast<const Element*>(in.data);
            for (std::size_t i = 0; i < elements; ++i) sum[i] += values[i];
          }
          std::memcpy(to, sum.data(), elements * sizeof(Element));
        },
        memory_);
  }

  void expectResults() const {
    for (int r = 0; r < shape_.ranks; ++r) {
      const auto blocks = outputBlocks(shape_, r);
      const bool inInput = inInput_[static_cast<std::size_t>(r)];
      const RankMemory& memory = memory_[static_cast<std::size_t>(r)];
      const auto& bytes = inInput ? memory.input : memory.output;
      const auto all = inInput ? inputBlocks(shape_, r) : blocks;
      for (const int b : blocks) {
        const auto at = std::find(all.begin(), all.end(), b) - all.begin();
        for (std::uint64_t i = 0; i < kCount; i += 17) {
          Element got = 0;
          std::memcpy(&got,
                      bytes.data() + (static_cast<std::uint64_t>(at) * kCount + i) * sizeof(got),
                      sizeof(got));
          ASSERT_EQ(got, expected(static_cast<std::size_t>(b), i))
              << "rank " << r << " block " << b;
        }
      }
    }
  }

 private:
  RankMemory memoryOf(int rank, bool inPlace) {
    const auto in = inputBlocks(shape_, rank);
    const auto out = outputBlocks(shape_, rank);
    const bool inOutput = inPlace && out.size() >= in.size();
    inInput_.push_back(inPlace && !inOutput);
    RankMemory memory;
    memory.inPlace = inPlace;
    if (!inOutput) memory.input.resize(in.size() * kCount * sizeof(Element));
    if (!inInput_.back()) memory.output.resize(out.size() * kCount * sizeof(Element));
    auto& holder = inOutput ? memory.output : memory.input;
    const auto& places = inOutput ? out : in;
    for (const int b : in) {
      const auto at = std::find(places.begin(), places.end(), b) - places.begin();
      for (std::uint64_t i = 0; i < kCount; ++i) {
        const Element value = valueAt(rank, static_cast<std::size_t>(b), i);
        std::memcpy(holder.data() + (static_cast<std::uint64_t>(at) * kCount + i) * sizeof(value),
                    &value, sizeof(value));
      }
    }
    return memory;
  }

  Element expected(std::size_t b, std::uint64_t i) const {
    const Block& block = shape_.blocks[b];
    const Group& group = shape_.groups[static_cast<std::size_t>(block.group)];
    if (!reduces(shape_.collective)) {
      return valueAt(group.ranks[static_cast<std::size_t>(block.source)], b, i);
    }
    Element sum = 0;
    for (const int r : group.ranks) sum += valueAt(r, b, i);
    return sum;
  }

  std::shared_ptr<const VerifiedSchedule> schedule_;
  const Shape& shape_;
  std::vector<RankMemory> memory_;
  std::vector<bool> inInput_;
};

void expectValues(const Cell& cell) {
  for (const Construction& construction : constructions()) {
    for (const Candidate& candidate : construction.candidates(cell)) {
      if (candidate.stages > 5) continue;
      SCOPED_TRACE(candidate.name + " " + toString(cell.collective));
      const auto schedule = verify(candidate.build());
      for (const bool inPlace : {false, true}) {
        if (inPlace && cell.collective == Collective::AllToAll) continue;
        Run run(schedule, inPlace);
        run.run();
        run.expectResults();
      }
    }
  }
}

TEST(Constructions, GiveTheValuesOfAPlainLoop) {
  for (int c = 0; c <= static_cast<int>(Collective::Gather); ++c) {
    const auto collective = static_cast<Collective>(c);
    expectValues(cellOf({collective, 8, 2, 4, 1, 1}));
    expectValues(cellOf({collective, 8, 4, 1, 2, 2}));
    expectValues(cellOf({collective, 8, 4, 2, 1, 3}));
    expectValues(cellOf({collective, 5, 2, 1, 1, 1}));
  }
}

}  // namespace
}  // namespace byway
