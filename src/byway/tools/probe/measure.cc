// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/probe/measure.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace byway::tools {
namespace {

constexpr std::uint64_t kLeastBytes = 16 << 10;  // announced, as larger messages are
constexpr std::uint64_t kMostBytes = 8 << 20;    // a rank receives from all others at once
constexpr double kShares = 1.1;  // a link alone is so much faster than with others: they disturb
constexpr int kLatencyRuns = 20;
constexpr Seconds kTick = 1e-9;  // no time is shorter
constexpr int kBurst = 200;      // small messages; less than what a peer takes unasked

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Prober {
 public:
  Prober(ProbeLinks& links, const ProbeOptions& options)
      : links_(links), options_(options), n_(links.ranks()) {
    result_.ranks = n_;
    result_.links.assign(static_cast<std::size_t>(n_ * n_), 0.0);
  }

  Measurements run() {
    say("latency");
    findLinks();
    measureLatency();
    say("rates of links");
    for (int shift = 1; shift < n_; ++shift) measureTogether(permutation(shift));
    if (disturbed()) {
      say("rates of links, one by one");
      result_.oneByOne = true;
      for (const Flow& flow : everyLink()) measureTogether({flow});
    }
    say("ports");
    measurePorts();
    say("all links");
    measureAll();
    say("cost of a message, sums");
    measureMessages();
    result_.starved = links_.starved();
    result_.reduce = links_.reduceRate();
    return std::move(result_);
  }

 private:
  void say(const char* what) const {
    if (options_.progress) options_.progress(what);
  }
  double& rate(const Flow& flow) {
    return result_.links[static_cast<std::size_t>(flow.from * n_ + flow.to)];
  }
  // Every rank sends to one and receives from one.
  std::vector<Flow> permutation(int shift) const {
    std::vector<Flow> flows;
    for (int from = 0; from < n_; ++from) flows.push_back({from, (from + shift) % n_, 1, 1});
    return flows;
  }
  std::vector<Flow> everyLink() const {
    std::vector<Flow> flows;
    for (int shift = 1; shift < n_; ++shift) {
      for (const Flow& flow : permutation(shift)) {
        if (result_.link(flow.from, flow.to) > 0) flows.push_back(flow);
      }
    }
    return flows;
  }
  // Of several runs: the quickest, and whether a second one confirms it.
  struct Quickest {
    Seconds best = kNever, second = kNever;
    void add(Seconds time) {
      second = std::min(second, std::max(best, time));
      best = std::min(best, time);
    }
    bool confirmed() const {
      constexpr double kClose = 0.01;
      return second - best < kClose * best;
    }
  };
  // Flow by flow.
  std::vector<Quickest> quickest(const std::vector<Flow>& flows) {
    std::vector<Quickest> all(flows.size());
    for (int i = 0; i < options_.mostRepeats; ++i) {
      if (i >= options_.leastRepeats && confirmed(all)) break;
      const auto times = links_.run(flows);
      for (std::size_t f = 0; f < flows.size(); ++f) all[f].add(times[f]);
    }
    return all;
  }
  static bool confirmed(const std::vector<Quickest>& all) {
    return std::all_of(all.begin(), all.end(), [](const auto& one) { return one.confirmed(); });
  }
  Seconds quickestOf(const Flow& flow, int runs) {
    Seconds best = kNever;
    for (int i = 0; i < runs; ++i) best = std::min(best, links_.run({flow})[0]);
    return best;
  }
  // The quickest of several runs, each as slow as its slowest flow; until it is what was expected,
  // or a second one confirms it.
  Seconds quickestWhole(const std::vector<Flow>& flows, Seconds expected) {
    Quickest all;
    for (int i = 0; i < options_.mostRepeats; ++i) {
      constexpr double kClose = 1.02;
      if (all.best - small_ < expected * kClose) break;
      if (i >= options_.leastRepeats && all.confirmed()) break;
      links_.run(flows);
      all.add(links_.whole());
    }
    return all.best - small_;
  }

  void findLinks() {
    for (int shift = 1; shift < n_; ++shift) {
      const auto flows = permutation(shift);
      const auto times = links_.run(flows);
      for (std::size_t f = 0; f < flows.size(); ++f) rate(flows[f]) = times[f] < kNever ? 1 : 0;
    }
  }

  void measureLatency() {
    std::vector<double> seen;
    for (const Flow& flow : someLinks()) {
      seen.push_back(quickestOf(flow, kLatencyRuns));
    }
    small_ = median(seen);
    result_.alpha = std::max(0.0, small_ - links_.acknowledgement());
  }
  // One from each rank where there is one.
  std::vector<Flow> someLinks() const {
    std::vector<Flow> some;
    for (const Flow& flow : everyLink()) {
      const bool isNew = std::none_of(some.begin(), some.end(),
                                      [&](const Flow& other) { return other.from == flow.from; });
      if (isNew) some.push_back(flow);
    }
    return some;
  }

  // Flows that exist; sizes are raised until each takes its time.
  void measureTogether(std::vector<Flow> flows) {
    std::erase_if(flows, [&](const Flow& flow) { return rate(flow) <= 0; });
    if (flows.empty()) return;
    for (Flow& flow : flows) flow.bytes = kLeastBytes;
    auto grown = links_.run(flows);
    for (bool growing = true; growing;) {
      growing = false;
      for (std::size_t f = 0; f < flows.size(); ++f) {
        const double lacking = options_.linkTime / grown[f];
        constexpr double kEnough = 1.5, kMostAtOnce = 8;
        if (lacking < kEnough || flows[f].bytes >= kMostBytes) continue;
        const auto wanted = static_cast<std::uint64_t>(static_cast<double>(flows[f].bytes) *
                                                       std::min(lacking, kMostAtOnce));
        flows[f].bytes = std::min(kMostBytes, wanted);
        growing = true;
      }
      if (growing) grown = links_.run(flows);
    }
    for (const Flow& flow : flows) rate(flow) = kTick;
    // Where runs differ, something disturbs: more of it weighs less against a longer time.
    constexpr int kAttempts = 3;
    constexpr std::uint64_t kLonger = 3;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const auto times = quickest(flows);
      for (std::size_t f = 0; f < flows.size(); ++f) {
        const Seconds time = std::max(times[f].best - small_, kTick);
        rate(flows[f]) = std::max(rate(flows[f]), static_cast<double>(flows[f].bytes) / time);
      }
      if (confirmed(times)) break;
      for (Flow& flow : flows) flow.bytes = std::min(kMostBytes, kLonger * flow.bytes);
    }
  }

  bool disturbed() {
    std::vector<double> ratios;
    for (const Flow& flow : someLinks()) {
      const double together = rate(flow);
      measureTogether({flow});
      ratios.push_back(rate(flow) / together);
      rate(flow) = std::max(rate(flow), together);
    }
    return median(ratios) > kShares;
  }

  // So much of each that all would end together after `time`.
  std::vector<Flow> inProportion(std::vector<Flow> flows, Seconds time) {
    std::erase_if(flows, [&](const Flow& flow) { return rate(flow) <= 0; });
    for (Flow& flow : flows) {
      flow.bytes =
          std::clamp(static_cast<std::uint64_t>(rate(flow) * time), kLeastBytes, kMostBytes);
    }
    return flows;
  }
  static double bytesOf(const std::vector<Flow>& flows) {
    return std::accumulate(flows.begin(), flows.end(), 0.0, [](double sum, const Flow& flow) {
      return sum + static_cast<double>(flow.bytes);
    });
  }
  // `atLeast`: what something else than the links asks for.
  Measurements::Sum together(std::vector<Flow> flows, Seconds atLeast = 0) {
    if (flows.empty()) return {};
    Seconds expected = atLeast;
    for (const Flow& flow : flows) {
      expected = std::max(expected, static_cast<double>(flow.bytes) / rate(flow));
    }
    const double bytes = bytesOf(flows);
    const Measurements::Sum sum{bytes / std::max(quickestWhole(flows, expected), kTick),
                                bytes / expected};
    // Less than expected is said of a longer time alone.
    constexpr double kEnough = 0.95;
    constexpr std::uint64_t kLonger = 4;
    if (sum.measured > kEnough * sum.expected) return sum;
    const bool isLong = std::any_of(flows.begin(), flows.end(), [](const Flow& flow) {
      return flow.bytes > kMostBytes / kLonger;
    });
    if (isLong) return sum;
    for (Flow& flow : flows) flow.bytes *= kLonger;
    const Seconds longer = std::max(quickestWhole(flows, expected * kLonger), kTick);
    return {std::max(sum.measured, bytes * static_cast<double>(kLonger) / longer), sum.expected};
  }

  void measurePorts() {
    for (int rank = 0; rank < n_; ++rank) {
      std::vector<Flow> out, in;
      for (int shift = 1; shift < n_; ++shift) {
        out.push_back({rank, (rank + shift) % n_, 1, 1});
        in.push_back({(rank + shift) % n_, rank, 1, 1});
      }
      result_.egress.push_back(together(inProportion(out, options_.linkTime / 2)));
      result_.ingress.push_back(together(inProportion(in, options_.linkTime / 2)));
    }
  }

  void measureAll() {
    const auto flows = inProportion(everyLink(), options_.linkTime / 2);
    if (flows.empty()) return;
    std::vector<double> out(static_cast<std::size_t>(n_)), in(out);
    Seconds ports = 0;
    for (const Flow& flow : flows) {
      const auto bytes = static_cast<double>(flow.bytes);
      out[static_cast<std::size_t>(flow.from)] += bytes;
      in[static_cast<std::size_t>(flow.to)] += bytes;
    }
    for (std::size_t rank = 0; rank < out.size(); ++rank) {
      const auto timeOf = [](double bytes, const Measurements::Sum& port) {
        return bytes > 0 && port.measured < port.expected ? bytes / port.measured : 0;
      };
      ports = std::max({ports, timeOf(out[rank], result_.egress[rank]),
                        timeOf(in[rank], result_.ingress[rank])});
    }
    result_.all = together(flows, ports);
  }

  void measureMessages() {
    std::vector<double> costs;
    for (Flow flow : someLinks()) {
      const double linkTime = 1 / rate(flow);
      const Seconds one = quickestOf(flow, kLatencyRuns);
      flow.messages = kBurst;
      const Seconds burst = quickestOf(flow, kLatencyRuns / 2);
      costs.push_back(std::max(0.0, (burst - one) / (kBurst - 1) - linkTime));
    }
    result_.message = median(costs);
  }

  ProbeLinks& links_;
  const ProbeOptions& options_;
  int n_;
  Seconds small_ = 0;  // what a message of one byte takes
  Measurements result_;
};

}  // namespace

Measurements measure(ProbeLinks& links, const ProbeOptions& options) {
  return Prober(links, options).run();
}

}  // namespace byway::tools
