// SPDX-License-Identifier: BSD-3-Clause
// Pacing in real time: eight processes, one link or all 56 of them.
#include <fstream>

#include "byway/transport/paced/paced_wire.h"
#include "byway/transport/test_world.h"
#include "byway/transport/ucx/sanitizer_test_util.h"
#include "byway/transport/ucx/test_processes.h"
#include "byway/transport/ucx/ucx_wire.h"

namespace byway {
namespace {

using testing::pattern;
using testing::Probe;
using testing::Processes;
using testing::Rank;

constexpr double kRate = 10e6;
constexpr std::size_t kAhead = 32;  // messages that a link's sender has announced ahead
constexpr std::size_t kSlots = 16;  // receives that its receiver has posted ahead

// One direction of one link, on its sender or its receiver.
struct Flow {
  std::uint32_t peer = 0;
  std::size_t bytes = 0, count = 0;
  std::vector<std::byte> data;  // message i is the window of `bytes` from 64 * i on
  std::size_t posted = 0;
  std::array<std::vector<std::byte>, kSlots> slots;
  std::vector<Probe> probes;
  std::size_t done = 0;

  void prepare(std::uint64_t from, std::uint64_t to) {
    data = pattern(from, to, bytes + 64 * count);
    probes.resize(count);
    for (auto& slot : slots) slot.resize(bytes);
  }
  std::span<const std::byte> message(std::size_t i) const {
    return std::span(data).subspan(64 * i, bytes);
  }
};

struct Starts final : ArrivalSink {
  std::map<std::uint32_t, Seconds> first;
  bool dataArrived(const MatchKey& key, const Stamp& stamp) override {
    if (key.sequence == 1 && key.transfer == 0) {
      first[key.source] = std::bit_cast<Seconds>(stamp[0]);
    }
    return true;
  }
  void controlArrived(PeerId, std::span<const std::byte>) override {}
};

void sendMore(Rank& rank, Flow& flow) {
  while (flow.done < flow.posted && flow.probes[flow.done].calls > 0) ++flow.done;
  while (flow.posted < flow.count && flow.posted < flow.done + kAhead) {
    const auto message = flow.message(flow.posted);
    const ConstBuffer from(message.data(), message.size());
    const Stamp stamp{std::bit_cast<std::uint64_t>(SteadyClock::instance().now())};
    rank.transport->send(
        rank.peers[flow.peer],
        {1, 1, static_cast<std::uint32_t>(flow.posted), static_cast<std::uint32_t>(rank.self)},
        stamp, {&from, 1}, flow.probes[flow.posted].completion());
    ++flow.posted;
  }
}

void recvMore(Rank& rank, Flow& flow) {
  while (flow.done < flow.posted && flow.probes[flow.done].calls > 0) {
    const auto expected = flow.message(flow.done);
    BYWAY_REQUIRE(rank, flow.probes[flow.done].is(Outcome::Ok));
    const auto& got = flow.slots[flow.done % kSlots];
    BYWAY_REQUIRE(rank, std::equal(got.begin(), got.end(), expected.begin()));
    ++flow.done;
  }
  while (flow.posted < flow.count && flow.posted < flow.done + kSlots) {
    const Buffer to{flow.slots[flow.posted % kSlots].data(), flow.bytes};
    flow.probes[flow.posted].clock = &SteadyClock::instance();
    rank.transport->recv(rank.peers[flow.peer],
                         {1, 1, static_cast<std::uint32_t>(flow.posted), flow.peer}, {&to, 1},
                         flow.probes[flow.posted].completion());
    ++flow.posted;
  }
}

// The first use of each way, for headers and for fetches.
void warmUp(Rank& rank) {
  constexpr std::size_t kBytes = 10'000;
  const std::vector<std::byte> out(kBytes);
  std::vector<std::vector<std::byte>> in(rank.peers.size(), out);
  std::vector<Probe> probes(2 * rank.peers.size());
  const auto self = static_cast<std::uint32_t>(rank.self);
  for (std::uint32_t p = 0; p < rank.peers.size(); ++p) {
    const ConstBuffer from(out.data(), kBytes);
    const Buffer to{in[p].data(), kBytes};
    rank.transport->send(rank.peers[p], {1, 0, 0, self}, {}, {&from, 1}, probes[p].completion());
    rank.transport->recv(rank.peers[p], {1, 0, 0, p}, {&to, 1},
                         probes[rank.peers.size() + p].completion());
  }
  rank.drive([&] { return rank.transport->outstanding(1) == 0; });
}

// How long this process was ready and had no core.
Seconds waitedForCore() {
  double ran = 0, waited = 0;
  std::ifstream("/proc/self/schedstat") >> ran >> waited;
  return waited * 1e-9;
}

// "one": the link from 0 to 1 alone; "all": all 56.
void pacedBody(Rank& rank) {
  PaceOptions pace;
  pace.rateFrom = [](PeerId) { return LinkRate{kRate, 0}; };
  pace.phase = static_cast<double>(rank.self) / rank.size;
  Transport transport(makePacedWire(makeUcxWire(), pace));
  Starts starts;
  transport.setSink(&starts);
  rank.connect(transport);
  std::vector<Flow> sends, recvs;
  for (int peer = 0; peer < rank.size; ++peer) {
    if (peer == rank.self) continue;
    Flow flow;
    flow.peer = static_cast<std::uint32_t>(peer);
    flow.bytes = rank.argument == "small" ? 32'000 : 100'000;
    flow.count = (rank.argument == "one" ? 5'000'000 : 10'000'000) / flow.bytes;
    const bool isAll = rank.argument != "one";
    if (isAll || (rank.self == 0 && peer == 1)) sends.push_back(flow);
    if (isAll || (rank.self == 1 && peer == 0)) recvs.push_back(flow);
  }
  const auto self = static_cast<std::uint64_t>(rank.self);
  for (Flow& flow : sends) flow.prepare(self, flow.peer);
  for (Flow& flow : recvs) flow.prepare(flow.peer, self);
  warmUp(rank);
  for (Flow& flow : recvs) recvMore(rank, flow);
  rank.barrier();
  const Seconds start = SteadyClock::instance().now(), waitedBefore = waitedForCore();
  rank.drive([&] {
    for (Flow& flow : sends) sendMore(rank, flow);
    for (Flow& flow : recvs) recvMore(rank, flow);
    auto isOver = [](const Flow& flow) { return flow.done == flow.count; };
    return std::all_of(sends.begin(), sends.end(), isOver) &&
           std::all_of(recvs.begin(), recvs.end(), isOver);
  });
  rank.shared->starved[rank.self] =
      (waitedForCore() - waitedBefore) / (SteadyClock::instance().now() - start);
  for (const Flow& flow : recvs) {
    const Seconds taken = flow.probes.back().at - starts.first.at(flow.peer);
    const double ideal = static_cast<double>(flow.bytes * flow.count) / kRate;
    rank.shared->results[flow.peer][rank.self] = taken / ideal;
  }
  rank.barrier();
  transport.close(2);
}

const bool isRank = testing::runAsRank({{"paced", pacedBody}});

class UcxPaced : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(UcxProcesses, UcxPaced, ::testing::Values("one", "all", "small"));

struct Measured {
  double slowest = 0, fastest = kNever;  // link, as measured over bytes / rate
  double starved = 0;                    // the part of the time that a rank waited for a core
};

Measured runPaced(const char* flows) {
  EXPECT_FALSE(isRank);
  Processes ranks(8, "paced", flows);
  for (int r = 0; r < 8; ++r) EXPECT_EQ(ranks.wait(r), 0) << r;
  Measured run;
  for (int from = 0; from < 8; ++from) {
    run.starved = std::max(run.starved, ranks.shared().starved[from]);
    for (int to = 0; to < 8; ++to) {
      const double ratio = ranks.shared().results[from][to];
      if (ratio == 0) continue;
      run.slowest = std::max(run.slowest, ratio);
      run.fastest = std::min(run.fastest, ratio);
    }
  }
  return run;
}

// A flow takes bytes / rate within 2 %, alone and among 56. A run whose ranks did not get the cores
// says nothing when it is slow; too fast no run may be.
TEST_P(UcxPaced, FlowsTakeBytesOverRate) {
  if (const char* why = notWithSanitizers()) GTEST_SKIP() << why;
  constexpr double kBusyMachine = 0.5;
  Measured run;
  for (int i = 0; i < 3; ++i) {
    run = runPaced(GetParam());
    EXPECT_GE(run.fastest, 0.9999);
    if (run.slowest < 1.02 || run.starved < kBusyMachine) break;
  }
  RecordProperty("slowest", std::to_string(run.slowest));
  RecordProperty("starved", std::to_string(run.starved));
  if (run.slowest >= 1.02 && run.starved >= kBusyMachine) {
    GTEST_SKIP() << "undecided: ranks waited for a core " << run.starved << " of the time";
  }
  EXPECT_LT(run.slowest, 1.02);
}

}  // namespace
}  // namespace byway
