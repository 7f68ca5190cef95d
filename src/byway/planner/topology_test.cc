// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/topology.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "byway/base/error.h"

namespace byway {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

std::string errorOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

std::string refusal(const std::string& json) {
  return errorOf([&] { topologyFromJson(json, "topo.json"); });
}

std::string document(const std::string& links, const std::string& more = "") {
  return R"({"byway": "topology", "version": 1, "ranks": 2, "links_Bps": )" + links + more + "}";
}

TEST(Topology, PresetsHaveTheirShape) {
  const auto mesh = parseTopology("mesh:8", 8);
  EXPECT_TRUE(mesh.uniformMesh());
  EXPECT_EQ(mesh.link(0, 1), 50e9);
  EXPECT_EQ(mesh.link(3, 3), 0);
  EXPECT_EQ(mesh.alpha, 4e-6);
  EXPECT_EQ(mesh.name, "mesh:8");

  const auto host = parseTopology("host", 5);
  EXPECT_EQ(host.ranks, 5);
  EXPECT_GT(host.bus, 0);
  EXPECT_FALSE(host.uniformMesh());

  const auto fabric = parseTopology("switch:4@100G", 4);
  EXPECT_EQ(fabric.egress[2], 100e9);
  EXPECT_EQ(fabric.ingress[3], 100e9);
  EXPECT_FALSE(fabric.uniformMesh());
}

TEST(Topology, MeshTakesRateAndLatency) {
  const auto mesh = parseTopology("mesh:3@20M,150", 3);
  EXPECT_EQ(mesh.link(1, 2), 20e6);
  EXPECT_DOUBLE_EQ(mesh.alpha, 150e-6);
  EXPECT_EQ(parseTopology("mesh:3@1.5k", 3).link(0, 1), 1500);
  EXPECT_EQ(parseTopology("mesh:3@5e6,0", 3).alpha, 0);
  EXPECT_EQ(parseTopology("mesh:3@5e6,0", 3).message, 0);
}

TEST(Topology, WrongPresetsAreNamed) {
  const auto of = [](const char* text) { return errorOf([&] { parseTopology(text, 8); }); };
  EXPECT_THAT(of("mesh:4"), HasSubstr("it has 4 ranks, the communicator 8"));
  EXPECT_THAT(of("mesh:x"), HasSubstr("\"x\" is not a number of ranks"));
  EXPECT_THAT(of("mesh:8@"), HasSubstr("not a rate"));
  EXPECT_THAT(of("mesh:8@-3G"), HasSubstr("not a rate"));
  EXPECT_THAT(of("mesh:8@nan"), HasSubstr("not a rate"));
  EXPECT_THAT(of("mesh:8@3G,-1"), HasSubstr("not a latency"));
  EXPECT_THAT(of("mesh:8@3G,"), HasSubstr("not a latency"));
  EXPECT_THAT(of("/no/such/file"), HasSubstr("neither a preset"));
  EXPECT_THAT(of(""), HasSubstr("empty"));
}

TEST(Topology, JsonRoundTrip) {
  auto topology = switchTopology(3, 1e9 / 3, 1e-6);
  topology.name = "a \"name\"\n";
  topology.links[1] = 0.1;
  topology.egress[1] = std::numeric_limits<double>::infinity();
  topology.bus = 7e9;
  topology.message = 1e-7;
  topology.reduce = 2e10;
  const auto again = topologyFromJson(toJson(topology), "x");
  EXPECT_EQ(again.name, topology.name);
  EXPECT_EQ(again.hash(), topology.hash());
  EXPECT_EQ(toJson(again), toJson(topology));
  EXPECT_EQ(topologyFromJson(toJson(meshTopology(1, 1)), "x").ranks, 1);
}

TEST(Topology, APartHasTheLinksOfItsRanks) {
  Topology whole = meshTopology(4, 10, 3e-6, 1e-7);
  whole.links[3 * 4 + 1] = 7;  // from 3 to 1
  whole.egress[3] = 20;
  whole.ingress[0] = 30;
  whole.bus = 99;
  whole.reduce = 5;
  const Topology part = partOf(whole, std::vector{3, 0, 1});
  ASSERT_EQ(part.ranks, 3);
  EXPECT_EQ(part.links, (std::vector<double>{0, 10, 7, 10, 0, 10, 10, 10, 0}));
  EXPECT_EQ(part.egress[0], 20);
  EXPECT_EQ(part.ingress[1], 30);
  EXPECT_EQ(part.egress[1], whole.egress[0]);
  EXPECT_EQ((std::vector{part.bus, part.alpha, part.message, part.reduce}),
            (std::vector{99.0, 3e-6, 1e-7, 5.0}));
  EXPECT_EQ(partOf(meshTopology(8, 5, 1e-6), std::vector{6, 2}).hash(),
            meshTopology(2, 5, 1e-6).hash());
}

TEST(Topology, HashSeesEveryField) {
  const auto base = meshTopology(3, 1e9);
  auto other = base;
  other.name = "other";
  EXPECT_EQ(other.hash(), base.hash());
  const std::function<void(Topology&)> changes[] = {
      [](Topology& t) { t.links[1] *= 2; },  [](Topology& t) { t.egress[0] = 1; },
      [](Topology& t) { t.ingress[0] = 1; }, [](Topology& t) { t.bus = 1; },
      [](Topology& t) { t.alpha = 1; },      [](Topology& t) { t.message = 1; },
      [](Topology& t) { t.reduce = 1; },     [](Topology& t) { t.ranks = 4; }};
  for (const auto& change : changes) {
    other = base;
    change(other);
    EXPECT_NE(other.hash(), base.hash());
  }
}

TEST(Topology, JsonErrorsNamePathAndReason) {
  EXPECT_THAT(refusal(document("[[0, 1], [-1, 0]]")),
              HasSubstr("topo.json: links_Bps[1][0]: must be a finite number from 0, not -1"));
  EXPECT_THAT(refusal(document("[[0, 1], [1]]")),
              HasSubstr("links_Bps[1]: has 1 elements for 2 ranks"));
  EXPECT_THAT(refusal(document("[[0, 1]]")), HasSubstr("links_Bps: has 1 elements for 2 ranks"));
  EXPECT_THAT(refusal(document("[[0, \"x\"], [1, 0]]")),
              HasSubstr("links_Bps[0][1]: must be a number, not string"));
  EXPECT_THAT(refusal(document("[[5, 1], [1, 0]]")), HasSubstr("links_Bps[0][0]: must be 0"));
  EXPECT_THAT(refusal(document("[[0, 1], [1, 0]]", ", \"colour\": 1")),
              HasSubstr("unknown field \"colour\""));
  EXPECT_THAT(refusal(document("[[0, 1], [1, 0]]", ", \"egress_Bps\": [1, 2, 3]")),
              HasSubstr("egress_Bps: has 3 elements for 2 ranks"));
  EXPECT_THAT(refusal(document("[[0, 1], [1, 0]]", ", \"ranks\": 2")),
              MatchesRegex("topo.json:[0-9]+:[0-9]+: an object has two fields \"ranks\""));
  EXPECT_THAT(refusal("{\"byway\": \"topology\",\n \"version\": 1,\n \"ranks\": }"),
              HasSubstr("topo.json:3:11: "));
  EXPECT_THAT(refusal(R"({"byway": "topology", "version": 2})"), HasSubstr("version 2"));
  EXPECT_THAT(refusal(R"({"byway": "schedule", "version": 1})"), HasSubstr("not \"topology\""));
  EXPECT_THAT(refusal(R"({"version": 1})"), HasSubstr("\"byway\" is missing"));
  EXPECT_THAT(refusal(R"([1, 2])"), HasSubstr("must be an object, not array"));
  EXPECT_THAT(refusal(document("[[0, 1e999], [1, 0]]")),
              MatchesRegex("topo.json:[0-9]+:[0-9]+: number overflow.*1e999.*"));
  EXPECT_THAT(refusal(std::string(100, '[')), HasSubstr("topo.json:1:18: nested more than 16"));
  EXPECT_THAT(refusal(""), HasSubstr("topo.json:1:1: "));
}

TEST(Topology, FilesAreReadAndTheirRanksChecked) {
  const std::string path = testing::TempDir() + "byway_topology_test.json";
  std::ofstream(path) << toJson(meshTopology(4, 3e9));
  EXPECT_EQ(parseTopology(path, 4).link(1, 2), 3e9);
  EXPECT_THAT(errorOf([&] { parseTopology(path, 8); }),
              HasSubstr("it has 4 ranks, the communicator 8"));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace byway
