// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/probe/real_links.h"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "byway/kernels/reduce.h"

namespace byway::tools {
namespace {

constexpr Seconds kTimeout = 60;
constexpr double kMissing = 1e300;  // a time, as ranks tell it

Seconds now() { return SteadyClock::instance().now(); }

std::uint64_t bytesOf(const Flow& flow) {
  return flow.bytes * static_cast<std::uint64_t>(flow.messages);
}

// How long this process was ready and had no core.
Seconds waitedForCore() {
  double ran = 0, waited = 0;
  std::ifstream("/proc/self/schedstat") >> ran >> waited;
  return waited * 1e-9;
}

}  // namespace

// Tells the sender once all has arrived, from whichever thread learns of it.
struct RealLinks::Incoming {
  std::byte state{};  // 1: the link is missing
  Work data, told;
  std::mutex mutex;
};

RealLinks::RealLinks() {
  const LaunchInfo info = launchInfo();
  if (info.size < 2) {
    throw Error(ErrorCode::InvalidArgument,
                "a probe needs at least 2 ranks; start it with byway run -n N byway probe");
  }
  rank_ = info.rank;
  size_ = info.size;
  FileStore store(info.storeFolder);
  CommunicatorOptions options;
  options.topology = "host";
  options.timeout = kTimeout;
  std::vector<int> all(static_cast<std::size_t>(size_));
  std::iota(all.begin(), all.end(), 0);
  control_ = Communicator::create(Endpoint::process(Pace{}), store, "probe", all, rank_, options);
  const auto paced = Endpoint::process();
  // In one order on all ranks, so that nobody waits for two at once.
  for (int a = 0; a < size_; ++a) {
    for (int b = a + 1; b < size_; ++b) {
      if (rank_ != a && rank_ != b) continue;
      links_[{a, b}] = Communicator::create(paced, store, "link", {a, b}, rank_, options);
      links_[{b, a}] = Communicator::create(paced, store, "link", {b, a}, rank_, options);
    }
  }
  barrier();
  startedAt_ = now();
  waitedAt_ = waitedForCore();
}

RealLinks::~RealLinks() = default;

double RealLinks::starved() {
  return atMost({(waitedForCore() - waitedAt_) / (now() - startedAt_)})[0];
}

std::byte* RealLinks::memory(std::size_t index, std::size_t bytes) {
  if (memory_.size() <= index) memory_.resize(index + 1);
  if (memory_[index].size() < bytes) memory_[index].assign(bytes, std::byte{1});
  return memory_[index].data();
}

Work RealLinks::transfer(const Flow& flow, std::byte* data) {
  const bool sends = flow.from == rank_;
  std::vector<SendOrRecv> parts;
  for (int m = 0; m < flow.messages; ++m) {
    SendOrRecv part;
    part.kind = sends ? SendOrRecv::Kind::Send : SendOrRecv::Kind::Recv;
    part.peer = sends ? 1 : 0;
    part.region = Region(data + flow.bytes * static_cast<std::uint64_t>(m), flow.bytes);
    part.tag = static_cast<std::uint32_t>(m);
    parts.push_back(std::move(part));
  }
  return link(flow).batch(parts);
}

// Entry by entry the largest that any rank has.
std::vector<double> RealLinks::atMost(std::vector<double> mine) {
  const Region region(mine.data(), mine.size() * sizeof(double));
  control_->allReduce(region, region, mine.size(), DType::Float64, ReduceOp::Max).wait();
  return mine;
}

std::vector<Seconds> RealLinks::run(const std::vector<Flow>& flows) {
  std::vector<double> times(flows.size(), 0.0);
  std::vector<std::unique_ptr<Incoming>> incoming(flows.size());
  const auto isMissing = [&](const Flow& flow) { return missing_[{flow.from, flow.to}]; };
  std::uint64_t most = 1;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    if (flows[f].from == rank_) most = std::max(most, bytesOf(flows[f]));
    if (flows[f].to != rank_ || isMissing(flows[f])) continue;
    auto& in = *(incoming[f] = std::make_unique<Incoming>());
    in.data =
        transfer(flows[f], memory(1 + static_cast<std::size_t>(flows[f].from), bytesOf(flows[f])));
    in.data.whenDone([this, &in, to = flows[f].from, tag = static_cast<std::uint32_t>(f)] {
      const std::scoped_lock lock(in.mutex);
      if (in.data.error()) in.state = std::byte{1};
      in.told = control_->send(Region(&in.state, 1), DType::UInt8, to, tag);
    });
  }
  std::byte* const data = memory(0, most);
  std::vector<std::byte> states(flows.size());
  std::vector<Work> told(flows.size());
  for (std::size_t f = 0; f < flows.size(); ++f) {
    if (flows[f].from != rank_ || isMissing(flows[f])) continue;
    told[f] = control_->recv(Region(&states[f], 1), DType::UInt8, flows[f].to,
                             static_cast<std::uint32_t>(f));
  }
  std::vector<Work> sent(flows.size());
  barrier();
  const Seconds start = now();
  for (std::size_t f = 0; f < flows.size(); ++f) {
    if (flows[f].from == rank_ && !isMissing(flows[f])) sent[f] = transfer(flows[f], data);
  }
  for (std::size_t f = 0; f < flows.size(); ++f) {
    if (flows[f].from != rank_) continue;
    told[f].wait();
    times[f] = states[f] == std::byte{0} && !isMissing(flows[f]) ? now() - start : kMissing;
    if (times[f] < kMissing) sent[f].wait();
  }
  barrier();
  times.push_back(now() - start);
  times = atMost(std::move(times));
  whole_ = times.back();
  times.pop_back();
  for (auto& in : incoming) {
    if (!in) continue;
    const std::scoped_lock lock(in->mutex);
    in->told.wait();
  }
  for (std::size_t f = 0; f < flows.size(); ++f) {
    if (times[f] < kMissing) continue;
    missing_[{flows[f].from, flows[f].to}] = true;
    times[f] = kNever;
  }
  return times;
}

Seconds RealLinks::acknowledgement() {
  constexpr int kRounds = 100;
  std::byte token{};
  const Region region(&token, 1);
  Seconds best = kNever;
  for (int i = 0; i < kRounds && rank_ < 2; ++i) {
    const Seconds start = now();
    if (rank_ == 0) control_->send(region, DType::UInt8, 1).wait();
    control_->recv(region, DType::UInt8, 1 - rank_).wait();
    if (rank_ == 1) control_->send(region, DType::UInt8, 0).wait();
    best = std::min(best, now() - start);
  }
  return atMost({rank_ == 0 ? best / 2 : 0})[0];
}

double RealLinks::reduceRate() {
  constexpr std::size_t kCount = 1 << 20;
  constexpr int kRounds = 10;
  std::vector<float> a(kCount, 1.0F), b(kCount, 2.0F), to(kCount);
  const std::vector<ReduceInput> inputs{{a.data()}, {b.data()}};
  Seconds best = kNever;
  barrier();
  for (int i = 0; i < kRounds; ++i) {
    const Seconds start = now();
    reduce({DType::Float32, ReduceOp::Sum}, to.data(), inputs, kCount);
    best = std::min(best, now() - start);
  }
  const double bytes = static_cast<double>(inputs.size() * kCount * sizeof(float));
  return bytes / atMost({best})[0];
}

}  // namespace byway::tools
