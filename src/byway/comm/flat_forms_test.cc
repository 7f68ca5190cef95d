// SPDX-License-Identifier: BSD-3-Clause
// Blocks of unlike size: a count for each pair or rank, known to all, or to those whom it concerns.
#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "byway/comm/threads_test_util.h"

namespace byway {
namespace {

using Ints = std::vector<std::int32_t>;
using Counts = std::vector<std::uint64_t>;

const CallOptions kShort{.timeout = 20, .keepAlive = nullptr};

std::int32_t valueOf(std::size_t from, std::size_t to, int call, std::size_t i) {
  return static_cast<std::int32_t>(from * 10000000 + to * 1000000 + i) + 7 * call;
}

// counts[from * n + to]
struct Matrix {
  std::size_t n;
  Counts counts;
  std::uint64_t at(std::size_t from, std::size_t to) const { return counts[from * n + to]; }
  Counts row(std::size_t from) const {
    return {counts.begin() + static_cast<std::ptrdiff_t>(from * n),
            counts.begin() + static_cast<std::ptrdiff_t>((from + 1) * n)};
  }
  Counts column(std::size_t to) const {
    Counts column;
    for (std::size_t from = 0; from < n; ++from) column.push_back(at(from, to));
    return column;
  }
};

// Every kind: about a third of the pairs empty, some larger than an eager message, whole rows and
// columns empty, nothing at all, one pair alone.
Matrix drawMatrix(std::mt19937_64& random, std::size_t n) {
  Matrix m{n, Counts(n * n, 0)};
  const std::uint64_t kind = random() % 8;
  if (kind == 0) return m;
  if (kind == 1) {
    m.counts[random() % (n * n)] = 5000;
    return m;
  }
  for (auto& count : m.counts) {
    if (random() % 3 != 0) count = random() % 10 == 0 ? 3000 + random() % 3000 : random() % 30;
  }
  const std::size_t empty = random() % n;
  for (std::size_t i = 0; i < n; ++i) {
    if (kind == 2) m.counts[empty * n + i] = 0;
    if (kind == 3) m.counts[i * n + empty] = 0;
  }
  return m;
}

Ints sentBy(const Matrix& m, std::size_t self, int call) {
  Ints out;
  for (std::size_t to = 0; to < m.n; ++to) {
    for (std::size_t i = 0; i < m.at(self, to); ++i) out.push_back(valueOf(self, to, call, i));
  }
  return out;
}

Ints receivedBy(const Matrix& m, std::size_t self, int call) {
  Ints out;
  for (std::size_t from = 0; from < m.n; ++from) {
    for (std::size_t i = 0; i < m.at(from, self); ++i) out.push_back(valueOf(from, self, call, i));
  }
  return out;
}

std::size_t selfOf(const Communicator& comm) { return static_cast<std::size_t>(comm.rank()); }

class FlatForms : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, FlatForms, testing::Values(1, 2, 3, 4, 5, 8));

TEST_P(FlatForms, AllToAllByRowAndColumn) {
  ThreadRanks().run(GetParam(), {}, [](Communicator& comm) {
    std::mt19937_64 random(4);
    for (int call = 0; call < 60; ++call) {
      const Matrix m = drawMatrix(random, static_cast<std::size_t>(comm.size()));
      const auto self = selfOf(comm);
      Ints in = sentBy(m, self, call);
      const Ints want = receivedBy(m, self, call);
      Ints out(want.size(), -1);
      comm.allToAll(regionOf(in), regionOf(out), m.row(self), m.column(self), DType::Int32).wait();
      ASSERT_EQ(out, want) << "call " << call;
      Ints known(want.size(), -1);
      comm.allToAll(regionOf(in), regionOf(known), m.counts, DType::Int32).wait();
      ASSERT_EQ(known, want) << "call " << call << ", all counts known";
    }
  });
}

// Many at once, waited for from the last to the first.
TEST_P(FlatForms, CallsUnderWayTogether) {
  ThreadRanks().run(GetParam(), {}, [](Communicator& comm) {
    std::mt19937_64 random(9);
    const auto self = selfOf(comm);
    std::vector<Matrix> matrices;
    std::vector<Ints> in;
    std::vector<Ints> out;
    constexpr int kCalls = 12;
    for (int call = 0; call < kCalls; ++call) {
      matrices.push_back(drawMatrix(random, static_cast<std::size_t>(comm.size())));
      in.push_back(sentBy(matrices.back(), self, call));
      out.emplace_back(receivedBy(matrices.back(), self, call).size(), -1);
    }
    std::vector<Work> works;
    for (std::size_t c = 0; c < kCalls; ++c) {
      works.push_back(comm.allToAll(regionOf(in[c]), regionOf(out[c]), matrices[c].row(self),
                                    matrices[c].column(self), DType::Int32));
    }
    for (std::size_t c = kCalls; c-- > 0;) {
      works[c].wait();
      ASSERT_EQ(out[c], receivedBy(matrices[c], self, static_cast<int>(c)));
    }
  });
}

CommunicatorOptions exchanging(const std::string& topology, const std::string& route) {
  CommunicatorOptions options;
  options.exchangeCounts = true;
  options.topology = topology;
  options.route = route;
  return options;
}

// Counts that a rank knows alone, exchanged within the call; other calls between, on one buffer.
TEST_P(FlatForms, ExchangedCounts) {
  ThreadRanks().run(GetParam(), exchanging("", ""), [](Communicator& comm) {
    std::mt19937_64 random(12);
    const auto self = selfOf(comm);
    for (int call = 0; call < 20; ++call) {
      const Matrix m = drawMatrix(random, static_cast<std::size_t>(comm.size()));
      Ints in = sentBy(m, self, call);
      const Ints want = receivedBy(m, self, call);
      Ints out(want.size(), -1);
      Ints again(want.size(), -1);
      std::vector<Work> works;
      works.push_back(
          comm.allToAll(regionOf(in), regionOf(out), m.row(self), m.column(self), DType::Int32));
      Ints sum(1, comm.rank());
      works.push_back(comm.allReduce(regionOf(sum), regionOf(sum), 1, DType::Int32));
      works.push_back(
          comm.allToAll(regionOf(in), regionOf(again), m.row(self), m.column(self), DType::Int32));
      // Writes what the first call writes, after it.
      works.push_back(
          comm.allToAll(regionOf(in), regionOf(out), m.row(self), m.column(self), DType::Int32));
      if (call % 2 == 0) std::reverse(works.begin(), works.end());
      for (const Work& work : works) work.wait();
      ASSERT_EQ(out, want) << "call " << call;
      ASSERT_EQ(again, want) << "call " << call;
      ASSERT_EQ(sum[0], comm.size() * (comm.size() - 1) / 2);
      ASSERT_EQ(comm.exchangeCounts(m.row(self)), m.counts);
    }
    ASSERT_EQ(comm.exchangeCounts({}), Counts());
  });
}

TEST(FlatFormsCases, ExchangedCountsCanBeRelayed) {
  std::atomic<std::uint64_t> staged{0};
  ThreadRanks().run(4, exchanging("mesh:4@1G,1", "packing K=4"), [&](Communicator& comm) {
    for (int call = 0; call < 5; ++call) {
      Matrix m{4, Counts(16, 50)};
      m.counts[1] = 200000 + static_cast<std::uint64_t>(call) * 1000;  // from 0 to 1
      const auto self = selfOf(comm);
      Ints in = sentBy(m, self, call);
      const Ints want = receivedBy(m, self, call);
      Ints out(want.size(), -1);
      comm.allToAll(regionOf(in), regionOf(out), m.row(self), m.column(self), DType::Int32).wait();
      ASSERT_EQ(out, want);
    }
    staged += comm.stagePeak();
  });
  EXPECT_GT(staged.load(), 100000U) << "no rank carried data of another pair";
}

TEST(FlatFormsCases, OneRankSendsToAllAndTheOthersNothing) {
  ThreadRanks().run(4, {}, [](Communicator& comm) {
    const Counts splits{1, 2, 3, 4};
    const std::vector<Ints> want{{0}, {1, 2}, {3, 4, 5}, {6, 7, 8, 9}};
    for (int round = 0; round < 100; ++round) {
      Ints in(comm.rank() == 0 ? 10 : 0);
      std::iota(in.begin(), in.end(), 0);
      Ints out(splits[selfOf(comm)], -1);
      comm.allToAll(regionOf(in), regionOf(out), comm.rank() == 0 ? splits : Counts(4, 0),
                    {splits[selfOf(comm)], 0, 0, 0}, DType::Int32)
          .wait();
      ASSERT_EQ(out, want[selfOf(comm)]);
    }
  });
}

// Rank 2 sends `sent` elements to rank 1, which expects `expected`.
void expectPairNamed(std::uint64_t sent, std::uint64_t expected, bool exchange = false) {
  CommunicatorOptions settings;
  settings.exchangeCounts = exchange;
  ThreadRanks().run(4, settings, [&](Communicator& comm) {
    Counts sends(4, 3);
    Counts receives(4, 3);
    if (comm.rank() == 2) sends[1] = sent;
    if (comm.rank() == 1) receives[2] = expected;
    Ints in(std::accumulate(sends.begin(), sends.end(), std::uint64_t{0}), 1);
    Ints out(std::accumulate(receives.begin(), receives.end(), std::uint64_t{0}), -1);
    const Error error = errorOf([&] {
      comm.allToAll(regionOf(in), regionOf(out), sends, receives, DType::Int32, kShort).wait();
      comm.barrier(kShort).wait();  // for those that had all they needed
    });
    EXPECT_TRUE(error.code() == ErrorCode::Mismatch || error.code() == ErrorCode::Broken);
    const std::string pair = "rank 2 sends " + std::to_string(sent) +
                             " elements to rank 1, which expects " + std::to_string(expected);
    EXPECT_NE(std::string(error.what()).find(pair), std::string::npos) << error.what();
  });
}

TEST(FlatFormsCases, CountsOfAPairThatDifferAreNamedOnAllRanks) {
  expectPairNamed(4, 3);
  expectPairNamed(0, 3);
  expectPairNamed(3, 0);
  expectPairNamed(100000, 99999);
  expectPairNamed(1, 100000);
  expectPairNamed(4, 3, true);
  expectPairNamed(0, 3, true);
}

TEST(FlatFormsCases, WhoKnowsWhatMustAgree) {
  ThreadRanks().run(2, {}, [](Communicator& comm) {
    Ints in(4, 1);
    Ints out(4, -1);
    const Error error = errorOf([&] {
      if (comm.rank() == 0) {
        comm.allToAll(regionOf(in), regionOf(out), {2, 2}, {2, 2}, DType::Int32, kShort).wait();
      } else {
        comm.allToAll(regionOf(in), regionOf(out), 2, DType::Int32, kShort).wait();
      }
      comm.barrier(kShort).wait();
    });
    EXPECT_NE(std::string(error.what()).find("each rank has of its own"), std::string::npos)
        << error.what();
  });
}

// A rank's mistake is its InvalidArgument, and the others are released.
void expectRefused(const std::function<Work(Communicator&, bool wrong)>& call) {
  ThreadRanks().run(3, {}, [&](Communicator& comm) {
    const bool wrong = comm.rank() == 1;
    const Error error = errorOf([&] {
      call(comm, wrong).wait();
      comm.barrier(kShort).wait();
    });
    if (wrong) {
      EXPECT_EQ(error.code(), ErrorCode::InvalidArgument) << error.what();
    } else {
      EXPECT_NE(std::string(error.what()).find("rank 1 refused it"), std::string::npos)
          << error.what();
    }
  });
}

TEST(FlatFormsCases, MistakesReleaseTheOthers) {
  std::vector<Ints> memory(3, Ints(6));
  const auto in = [&](Communicator& c) { return Region(memory[selfOf(c)].data(), 12); };
  const auto out = [&](Communicator& c) { return Region(memory[selfOf(c)].data() + 3, 12); };
  expectRefused([&](Communicator& c, bool wrong) {  // in place
    return c.allToAll(in(c), wrong ? in(c) : out(c), {1, 1, 1}, {1, 1, 1}, DType::Int32, kShort);
  });
  expectRefused([&](Communicator& c, bool wrong) {  // no count for rank 2
    return c.allToAll(in(c), out(c), wrong ? Counts{1, 2} : Counts{1, 1, 1}, {1, 1, 1},
                      DType::Int32, kShort);
  });
  expectRefused([&](Communicator& c, bool wrong) {  // to itself 2, from itself 1
    return c.allToAll(in(c), out(c), wrong ? Counts{1, 2, 0} : Counts{1, 1, 1}, {1, 1, 1},
                      DType::Int32, kShort);
  });
  expectRefused([&](Communicator& c, bool wrong) {  // more than the buffer holds
    return c.allToAll(in(c), out(c), wrong ? Counts{1, 1, 2} : Counts{1, 1, 1}, {1, 1, 1},
                      DType::Int32, kShort);
  });
  expectRefused([&](Communicator& c, bool wrong) {  // the root of a gather knows its own count only
    const bool root = c.rank() == 1;
    return c.gather(Region(memory[selfOf(c)].data(), 4), root ? out(c) : Region(),
                    root && !wrong ? RankCounts::atRoot({1, 1, 1}) : RankCounts::own(1),
                    DType::Int32, 1, kShort);
  });
}

// The counts of round `call`: mixed, then all but one empty, then none.
Counts rankCounts(int call, std::size_t n) {
  Counts counts(n, 0);
  std::mt19937_64 random(static_cast<std::uint64_t>(call));
  if (call % 4 == 2) counts[random() % n] = 4001;
  if (call % 4 < 2) {
    for (auto& count : counts) count = random() % 3 == 0 ? 0 : random() % 5000;
  }
  return counts;
}

std::uint64_t before(const Counts& counts, std::size_t rank) {
  return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(rank),
                         std::uint64_t{0});
}

RankCounts known(const Counts& counts, const Communicator& comm, int root, bool everywhere) {
  if (everywhere) return counts;
  if (comm.rank() == root) return RankCounts::atRoot(counts);
  return RankCounts::own(counts[selfOf(comm)]);
}

TEST_P(FlatForms, GatherAndScatterWithCountsOfEveryRank) {
  ThreadRanks().run(GetParam(), {}, [](Communicator& comm) {
    const auto n = static_cast<std::size_t>(comm.size());
    const auto self = selfOf(comm);
    for (int call = 0; call < 24; ++call) {
      const Counts counts = rankCounts(call, n);
      const int root = call % comm.size();
      const bool isRoot = comm.rank() == root;
      Ints all;
      for (std::size_t r = 0; r < n; ++r) {
        for (std::size_t i = 0; i < counts[r]; ++i) all.push_back(valueOf(r, 0, call, i));
      }
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(before(counts, self));
      Ints mine(first, first + static_cast<std::ptrdiff_t>(counts[self]));
      const RankCounts asKnown = known(counts, comm, root, call % 2 == 0);

      Ints gathered(isRoot ? all.size() : 0, -1);
      comm.gather(regionOf(mine), regionOf(gathered), asKnown, DType::Int32, root).wait();
      ASSERT_EQ(gathered, isRoot ? all : Ints()) << "call " << call;
      Ints scattered(counts[self], -1);
      comm.scatter(regionOf(gathered), regionOf(scattered), asKnown, DType::Int32, root).wait();
      ASSERT_EQ(scattered, mine) << "call " << call;

      // The root's own block where it lies.
      if (isRoot) std::fill(gathered.begin(), gathered.end(), -1);
      if (isRoot) {
        std::copy(mine.begin(), mine.end(),
                  gathered.begin() + static_cast<std::ptrdiff_t>(before(counts, self)));
      }
      const Region own(gathered.data() + (isRoot ? before(counts, self) : 0),
                       isRoot ? counts[self] * sizeof(std::int32_t) : 0);
      comm.gather(isRoot ? own : regionOf(mine), regionOf(gathered), asKnown, DType::Int32, root)
          .wait();
      ASSERT_EQ(gathered, isRoot ? all : Ints()) << "call " << call << ", in place";
    }
  });
}

TEST(FlatFormsCases, AGatheredCountThatDiffersIsNamed) {
  for (const std::uint64_t sent : {7U, 0U}) {
    ThreadRanks().run(3, {}, [sent](Communicator& comm) {
      Ints mine(comm.rank() == 2 ? sent : 5, 1);
      Ints all(comm.rank() == 0 ? 15 : 0, -1);
      const Error error = errorOf([&] {
        comm.gather(regionOf(mine), regionOf(all),
                    comm.rank() == 0 ? RankCounts::atRoot({5, 5, 5}) : RankCounts::own(mine.size()),
                    DType::Int32, 0, kShort)
            .wait();
        comm.barrier(kShort).wait();
      });
      const std::string pair =
          "rank 2 sends " + std::to_string(sent) + " elements to rank 0, which expects 5";
      EXPECT_NE(std::string(error.what()).find(pair), std::string::npos) << error.what();
    });
  }
}

TEST_P(FlatForms, AllGatherAndReduceScatterWithEmptyBlocks) {
  ThreadRanks().run(GetParam(), {}, [](Communicator& comm) {
    const auto n = static_cast<std::size_t>(comm.size());
    const auto self = selfOf(comm);
    for (int call = 0; call < 16; ++call) {
      const Counts counts = rankCounts(call, n);
      const std::uint64_t total = before(counts, n);
      const std::uint64_t start = before(counts, self);
      Ints mine;
      for (std::size_t i = 0; i < counts[self]; ++i) mine.push_back(valueOf(self, 1, call, i));
      Ints all(total, -1);
      comm.allGather(regionOf(mine), regionOf(all), counts, DType::Int32).wait();
      for (std::size_t r = 0; r < n; ++r) {
        for (std::size_t i = 0; i < counts[r]; ++i) {
          ASSERT_EQ(all[before(counts, r) + i], valueOf(r, 1, call, i)) << "call " << call;
        }
      }
      Ints in(total);
      for (std::size_t i = 0; i < total; ++i) in[i] = static_cast<std::int32_t>(self * 1000 + i);
      Ints out(counts[self], -1);
      comm.reduceScatter(regionOf(in), regionOf(out), counts, DType::Int32).wait();
      const auto ranks = static_cast<std::int32_t>(n);
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(out[i],
                  1000 * (ranks * (ranks - 1) / 2) + ranks * static_cast<std::int32_t>(start + i))
            << "call " << call;
      }
    }
  });
}

TEST(FlatFormsCases, ThePartOfTheOwnerIsSummed) {
  ThreadRanks().run(2, {}, [](Communicator& comm) {
    const std::int32_t r = comm.rank() + 1;
    Ints in{r, 10 * r, 10 * r, 10 * r};
    Ints out(comm.rank() == 0 ? 1 : 3, -1);
    comm.reduceScatter(regionOf(in), regionOf(out), {1, 3}, DType::Int32).wait();
    EXPECT_EQ(out, comm.rank() == 0 ? Ints{3} : (Ints{30, 30, 30}));
    Ints even(6);
    std::iota(even.begin(), even.end(), comm.rank() == 0 ? 1 : 11);
    Ints half(3, -1);
    comm.reduceScatter(regionOf(even), regionOf(half), {3, 3}, DType::Int32).wait();
    EXPECT_EQ(half, comm.rank() == 0 ? (Ints{12, 14, 16}) : (Ints{18, 20, 22}));
  });
}

}  // namespace
}  // namespace byway
