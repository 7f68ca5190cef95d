// SPDX-License-Identifier: BSD-3-Clause
// What a probe makes of links whose truth is known, on a virtual clock.
#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "byway/planner/planner.h"
#include "byway/planner/predict.h"
#include "byway/tools/probe/fit.h"
#include "byway/tools/probe/virtual_links_test_util.h"

namespace byway::tools {
namespace {

constexpr double kRate = 20e6;
constexpr Seconds kAlpha = 50e-6;
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

Fit probed(const Topology& truth) {
  VirtualLinks links(truth);
  return fit(measure(links, {}));
}

void expectRates(const Topology& found, const Topology& truth, double within) {
  for (int from = 0; from < truth.ranks; ++from) {
    for (int to = 0; to < truth.ranks; ++to) {
      const double rate = truth.link(from, to);
      EXPECT_NEAR(found.link(from, to), rate, within * rate) << from << " to " << to;
    }
  }
  for (const auto port : {&Topology::egress, &Topology::ingress}) {
    for (std::size_t r = 0; r < (truth.*port).size(); ++r) {
      const double limit = (truth.*port)[r];
      if (limit == kUnlimited) {
        EXPECT_EQ((found.*port)[r], kUnlimited) << "port of " << r;
      } else {
        EXPECT_NEAR((found.*port)[r], limit, within * limit) << "port of " << r;
      }
    }
  }
  EXPECT_NEAR(found.alpha, truth.alpha, 20e-6);
}

// The time on the true links of what is chosen by the measured ones, over what is chosen by the
// truth.
double loss(const Topology& truth, const Topology& found, Collective collective, int active) {
  PlanRequest request;
  request.collective = collective;
  request.ranks = truth.ranks;
  request.groups.resize(1);
  for (int r = 0; r < active; ++r) request.groups[0].ranks.push_back(r);
  request.blockBytes.assign(makeShape(collective, truth.ranks, request.groups).blocks.size(),
                            4 << 20);
  const std::vector<double> bytes(request.blockBytes.begin(), request.blockBytes.end());
  const auto time = [&](const Topology& topology) {
    const Plan made = plan(request, topology);
    return predict(made.chosen->schedule(), made.chosen->graph(), truth, bytes,
                   request.partialWeight);
  };
  return time(found) / time(truth);
}

void expectGoodPlans(const Topology& truth, const Topology& found) {
  for (const auto collective :
       {Collective::AllReduce, Collective::AllGather, Collective::AllToAll}) {
    for (const int active : {2, 4}) {
      EXPECT_LT(loss(truth, found, collective, active), 1.05) << active;
    }
  }
}

TEST(Probe, FindsAUniformMesh) {
  const Topology truth = meshTopology(8, kRate, kAlpha);
  const Fit found = probed(truth);
  EXPECT_EQ(found.build, Build::UniformMesh);
  EXPECT_TRUE(found.topology.uniformMesh());
  EXPECT_EQ(found.usual, kRate);
  EXPECT_THAT(found.notes, testing::IsEmpty());
  expectRates(found.topology, truth, 0.001);
  expectGoodPlans(truth, found.topology);
}

TEST(Probe, FindsASwitch) {
  const Topology truth = switchTopology(8, kRate, kAlpha);
  const Fit found = probed(truth);
  EXPECT_EQ(found.build, Build::Switch);
  expectRates(found.topology, truth, 0.01);
  expectGoodPlans(truth, found.topology);
}

TEST(Probe, FindsASlowLink) {
  Topology truth = meshTopology(8, kRate, kAlpha);
  truth.links[0 * 8 + 1] = truth.links[1 * 8 + 0] = kRate / 4;
  const Fit found = probed(truth);
  EXPECT_EQ(found.build, Build::Irregular);
  EXPECT_EQ(found.usual, kRate);
  EXPECT_THAT(found.notes, testing::ElementsAre("link 0 to 1 is slow: 5 MB/s, 0.25 of the usual",
                                                "link 1 to 0 is slow: 5 MB/s, 0.25 of the usual"));
  expectRates(found.topology, truth, 0.001);
  expectGoodPlans(truth, found.topology);
}

TEST(Probe, FindsALinkThatIsMissingOneWay) {
  Topology truth = meshTopology(5, kRate, kAlpha);
  truth.links[3 * 5 + 1] = 0;
  const Fit found = probed(truth);
  EXPECT_THAT(found.notes, testing::ElementsAre("link 3 to 1 is missing"));
  expectRates(found.topology, truth, 0.001);
}

TEST(Probe, FindsPortsOfSomeRanks) {
  Topology truth = meshTopology(6, kRate, kAlpha);
  truth.egress[2] = kRate;
  truth.ingress[4] = kRate;
  const Fit found = probed(truth);
  EXPECT_EQ(found.build, Build::Irregular);
  EXPECT_THAT(found.notes, testing::ElementsAre("rank 2 sends 20 MB/s at most",
                                                "rank 4 receives 20 MB/s at most"));
  expectRates(found.topology, truth, 0.01);
}

TEST(Probe, FindsRatesFarApart) {
  Topology truth = meshTopology(4, kRate, 3e-6);
  std::mt19937_64 random(11);
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      if (from != to) {
        truth.links[static_cast<std::size_t>(from * 4 + to)] =
            std::exp(std::uniform_real_distribution<double>(std::log(1e5), std::log(1e10))(random));
      }
    }
  }
  expectRates(probed(truth).topology, truth, 0.031);
}

TEST(Probe, TakesOneTimeForOneAfterAnother) {
  VirtualLinks links(meshTopology(8, kRate, kAlpha));
  measure(links, {});
  EXPECT_LT(links.now(), 10);
}

Measurements mesh(int n, double rate) {
  Measurements m;
  m.ranks = n;
  m.links.assign(static_cast<std::size_t>(n * n), rate);
  for (int r = 0; r < n; ++r) m.links[static_cast<std::size_t>(r * n + r)] = 0;
  m.egress.assign(static_cast<std::size_t>(n), {rate * (n - 1), rate * (n - 1)});
  m.ingress = m.egress;
  m.all = {rate * n * (n - 1), rate * n * (n - 1)};
  return m;
}

TEST(ProbeFit, RatesWithinTheNoiseAreOneRate) {
  Measurements m = mesh(8, 1e7);
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> noise(1 - 0.029, 1 + 0.029);
  for (double& rate : m.links) rate *= noise(random);
  for (auto& sum : m.egress) sum.measured *= noise(random);
  const Fit found = fit(m);
  EXPECT_TRUE(found.topology.uniformMesh());
  EXPECT_NEAR(found.usual, 1e7, 0.01e7);
}

TEST(ProbeFit, RatesBeyondTheNoiseStayApart) {
  Measurements m = mesh(4, 1e7);
  m.links[1] = 0.92e7;
  const Fit found = fit(m);
  EXPECT_EQ(found.topology.links[1], 0.92e7);
  EXPECT_EQ(found.topology.links[2], 1e7);
  EXPECT_EQ(found.build, Build::Irregular);
}

TEST(ProbeFit, WhatAllShareIsABusAndNoPorts) {
  Measurements m = mesh(8, 5e9);
  m.egress.assign(8, {8e9, 35e9});
  m.ingress.assign(8, {8.2e9, 35e9});
  m.all = {8.1e9, 64e9};
  const Fit found = fit(m);
  EXPECT_EQ(found.topology.bus, 8.1e9);
  EXPECT_EQ(found.topology.egress[0], kUnlimited);
  EXPECT_THAT(found.notes, testing::ElementsAre(testing::HasSubstr("all links share 8.1 GB/s")));
}

TEST(ProbeFit, ReadsBackFromItsFile) {
  Measurements m = mesh(3, 1.234567e8);
  m.alpha = 12.34567e-6;
  m.message = 1.25e-6;
  m.reduce = 4.5678e9;
  const Topology made = fit(m).topology;
  EXPECT_EQ(topologyFromJson(toJson(made), "file").hash(), made.hash());
}

}  // namespace
}  // namespace byway::tools
