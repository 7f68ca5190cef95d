// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/probe/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace byway::tools {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

double threeDigits(double value) {
  if (!(value > 0)) return 0;
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 2);
  return std::round(value / unit) * unit;
}

// Rates that lie within the noise of each other become their median, to three digits.
void snap(std::vector<double*> rates) {
  std::erase_if(rates, [](const double* rate) { return *rate <= 0 || !std::isfinite(*rate); });
  std::sort(rates.begin(), rates.end(), [](auto* a, auto* b) { return *a < *b; });
  for (std::size_t first = 0; first < rates.size();) {
    std::size_t end = first;
    const double most = *rates[first] * (1 + kNoise) / (1 - kNoise);
    while (end < rates.size() && *rates[end] <= most) ++end;
    const double middle = threeDigits(*rates[(first + end) / 2]);
    for (; first < end; ++first) *rates[first] = middle;
  }
}

// The rate that most links have.
double usualRate(const Topology& topology) {
  std::vector<double> rates;
  for (const double rate : topology.links) {
    if (rate > 0) rates.push_back(rate);
  }
  std::sort(rates.begin(), rates.end());
  double usual = 0;
  std::ptrdiff_t most = 0;
  for (auto at = rates.begin(); at != rates.end();) {
    const auto next = std::upper_bound(at, rates.end(), *at);
    if (next - at >= most) {
      most = next - at;
      usual = *at;
    }
    at = next;
  }
  return usual;
}

Build buildOf(const Topology& topology, double usual) {
  if (topology.uniformMesh()) return Build::UniformMesh;
  const auto ports = {&topology.egress, &topology.ingress};
  const bool isSwitch = std::all_of(ports.begin(), ports.end(), [&](const auto* list) {
    return std::all_of(list->begin(), list->end(),
                       [&](double port) { return port <= usual * (1 + kPortNoise); });
  });
  Topology open = topology;
  open.bus = 0;
  open.egress.assign(open.egress.size(), kUnlimited);
  open.ingress.assign(open.ingress.size(), kUnlimited);
  return isSwitch && open.uniformMesh() && topology.bus == 0 ? Build::Switch : Build::Irregular;
}

}  // namespace

std::string rateText(double bytesPerSecond) {
  struct Unit {
    double scale;
    const char* name;
  };
  for (const Unit unit : {Unit{1e9, "GB"}, Unit{1e6, "MB"}, Unit{1e3, "kB"}}) {
    if (bytesPerSecond >= unit.scale) {
      return fmt::format("{:.3g} {}/s", bytesPerSecond / unit.scale, unit.name);
    }
  }
  return fmt::format("{:.3g} B/s", bytesPerSecond);
}

namespace {

void noteLinks(Fit& fit) {
  const Topology& t = fit.topology;
  for (int from = 0; from < t.ranks; ++from) {
    for (int to = 0; to < t.ranks; ++to) {
      const double rate = t.link(from, to);
      if (from == to || rate == fit.usual) continue;
      if (rate <= 0) {
        fit.notes.push_back(fmt::format("link {} to {} is missing", from, to));
      } else {
        fit.notes.push_back(fmt::format("link {} to {} is {}: {}, {:.2f} of the usual", from, to,
                                        rate < fit.usual ? "slow" : "fast", rateText(rate),
                                        rate / fit.usual));
      }
    }
  }
}

void notePorts(Fit& fit) {
  const Topology& t = fit.topology;
  for (int rank = 0; rank < t.ranks && fit.build != Build::Switch; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    if (t.egress[r] < kUnlimited) {
      fit.notes.push_back(fmt::format("rank {} sends {} at most", rank, rateText(t.egress[r])));
    }
    if (t.ingress[r] < kUnlimited) {
      fit.notes.push_back(fmt::format("rank {} receives {} at most", rank, rateText(t.ingress[r])));
    }
  }
  if (t.bus > 0) {
    fit.notes.push_back(
        fmt::format("all links share {} (the memory or the cores of one host)", rateText(t.bus)));
  }
}

}  // namespace

const char* nameOf(Build build) {
  switch (build) {
    case Build::UniformMesh:
      return "uniform mesh";
    case Build::Switch:
      return "switch";
    case Build::Irregular:
      return "irregular";
  }
  return "";
}

Fit fit(const Measurements& m) {
  Fit fit;
  Topology& t = fit.topology;
  const auto n = static_cast<std::size_t>(m.ranks);
  t.name = fmt::format("probe:{}", m.ranks);
  t.ranks = m.ranks;
  t.links = m.links;
  t.egress.assign(n, kUnlimited);
  t.ingress.assign(n, kUnlimited);
  t.alpha = std::round(m.alpha * 1e7) / 1e7;
  t.message = std::round(m.message * 1e8) / 1e8;
  t.reduce = threeDigits(m.reduce);
  if (m.all.measured < m.all.expected * (1 - kBusNoise)) t.bus = threeDigits(m.all.measured);
  for (std::size_t r = 0; r < n; ++r) {
    // What all ranks share limits each as well, and is said once.
    const auto limit = [&](const Measurements::Sum& port) {
      const bool limited = port.measured < port.expected * (1 - kPortNoise) &&
                           (t.bus == 0 || port.measured < t.bus / 2);
      return limited ? port.measured : kUnlimited;
    };
    t.egress[r] = limit(m.egress[r]);
    t.ingress[r] = limit(m.ingress[r]);
  }
  std::vector<double*> rates;
  for (auto* list : {&t.links, &t.egress, &t.ingress}) {
    for (double& rate : *list) rates.push_back(&rate);
  }
  snap(std::move(rates));
  fit.usual = usualRate(t);
  fit.build = buildOf(t, fit.usual);
  noteLinks(fit);
  notePorts(fit);
  return fit;
}

}  // namespace byway::tools
