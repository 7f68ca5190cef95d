// SPDX-License-Identifier: BSD-3-Clause
// make_corpus FOLDER: writes the fuzz targets' first inputs, files and messages as Byway itself
// makes them, into FOLDER/schedule_json, FOLDER/topology_json and FOLDER/wire_headers.
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>

#include "byway/comm/plan_data.h"
#include "byway/executor/control.h"
#include "byway/executor/inquiry.h"
#include "byway/planner/construction.h"
#include "byway/schedule/json.h"
#include "byway/transport/ucx/protocol.h"
#include "fuzz_target.h"
#include "wire_samples.h"

namespace byway::fuzz {
namespace {

namespace fs = std::filesystem;

class Corpus {
 public:
  explicit Corpus(fs::path folder) : folder_(std::move(folder)) {}
  void add(const std::string& target, const std::string& name, std::string_view content) const {
    fs::create_directories(folder_ / target);
    std::ofstream out(folder_ / target / name, std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (!out.flush()) throw Error(ErrorCode::Resource, "cannot write " + name);
  }
  void add(Reader reader, const std::string& name, std::span<const std::byte> bytes) const {
    std::string content(1, static_cast<char>(reader));
    content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    add("wire_headers", name, content);
  }

 private:
  fs::path folder_;
};

std::vector<Group> groupsOf(int ranks, int members, bool several) {
  std::vector<Group> groups;
  for (int first = 0; first + members <= (several ? ranks : members); first += members) {
    Group group{std::vector<int>(static_cast<std::size_t>(members)), 0};
    std::iota(group.ranks.begin(), group.ranks.end(), first);
    groups.push_back(std::move(group));
  }
  return groups;
}

// Every candidate of every construction for small calls.
void addSchedules(const Corpus& corpus) {
  constexpr Collective kAll[] = {
#define BYWAY_X(id, name, reducing) Collective::id,
      BYWAY_COLLECTIVES(BYWAY_X)
#undef BYWAY_X
  };
  const Topology mesh = meshTopology(4, 50e9, 1e-6);
  for (const Collective collective : kAll) {
    for (const bool several : {false, true}) {
      Cell cell;
      cell.collective = collective;
      cell.ranks = mesh.ranks;
      cell.groups = groupsOf(mesh.ranks, 2, several);
      const auto blocks = makeShape(collective, cell.ranks, cell.groups).blocks.size();
      cell.blockBytes.assign(blocks, 1e6);
      cell.topology = &mesh;
      int number = 0;
      for (const Construction& construction : constructions()) {
        for (const Candidate& candidate : construction.candidates(cell)) {
          const std::string name = std::string(toString(collective)) +
                                   (several ? "-fused-" : "-single-") + std::to_string(number++);
          corpus.add("schedule_json", name, toJson(candidate.build()));
        }
      }
    }
  }
}

void addTopologies(const Corpus& corpus) {
  Topology lopsided = meshTopology(4, 20e9, 2e-6, 1e-6);
  lopsided.links[1] = 0;
  lopsided.links[2] = 5e9;
  lopsided.egress[3] = 30e9;
  lopsided.reduce = 8e9;
  corpus.add("topology_json", "host", toJson(hostTopology(2)));
  corpus.add("topology_json", "mesh", toJson(meshTopology(3, 50e9, 1e-6)));
  corpus.add("topology_json", "switch", toJson(switchTopology(5, 25e9)));
  corpus.add("topology_json", "lopsided", toJson(lopsided));
}

void addHeaders(const Corpus& corpus) {
  WireHeader header;
  header.key = {7, 42, 3, 1};
  header.bytes = 4096;
  header.creditBytes = 512;
  for (const auto type : {ucx::AmType::Hello, ucx::AmType::Eager, ucx::AmType::Announce,
                          ucx::AmType::Finished, ucx::AmType::Withdrawn}) {
    ucx::AmMessage message = ucx::toAmMessage(header);
    message.head.type = type;
    const bool whole = type == ucx::AmType::Eager || type == ucx::AmType::Announce;
    const auto* bytes = reinterpret_cast<const std::byte*>(&message);
    corpus.add(Reader::Header, "header-" + std::to_string(static_cast<int>(type)),
               {bytes, whole ? sizeof message : sizeof message.head});
  }
}

void addMessages(const Corpus& corpus) {
  std::vector<std::byte> table(sizeof(std::uint64_t));
  const std::uint64_t total = 300;
  std::memcpy(table.data(), &total, sizeof total);
  ucx::appendPiece(table, {0x1000, 100, false, std::vector<std::byte>(24)});
  ucx::appendPiece(table, {0x2000, 200, true, {}});
  corpus.add(Reader::Pieces, "pieces", table);
  ucx::ProcessAddress address = ucx::makeProcessAddress();
  address.process = address.host = address.pids = address.start = address.pid = 1;
  address.worker.resize(64);
  corpus.add(Reader::Address, "address", ucx::pack(address));
  for (const auto kind : {ControlKind::Broken, ControlKind::Goodbye, ControlKind::Refused,
                          ControlKind::Ask, ControlKind::Answer}) {
    ControlMessage message{kind, 9, 2, ErrorCode::Timeout, 5, 6, "rank 2 waited too long"};
    corpus.add(Reader::Control, "control-" + std::to_string(static_cast<int>(kind)),
               encode(message));
  }
  const std::string standing = encode(RankStanding{Standing::Waiting, 12, {1, 3, 17}});
  corpus.add(Reader::Standing, "standing",
             {reinterpret_cast<const std::byte*>(standing.data()), standing.size()});
  const Topology mesh = meshTopology(3, 20e6, 50e-6);
  corpus.add(Reader::Plan, "plan", encodePlan(plan(sampleRequest(), mesh)));
  corpus.add(Reader::Plan, "refusal", encodeRefusal(Error(ErrorCode::Unsupported, "no links")));
}

}  // namespace
}  // namespace byway::fuzz

int main(int argc, char** argv) {
  using namespace byway;
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_corpus FOLDER\n");
    return 2;
  }
  try {
    const fuzz::Corpus corpus(argv[1]);
    fuzz::addSchedules(corpus);
    fuzz::addTopologies(corpus);
    fuzz::addHeaders(corpus);
    fuzz::addMessages(corpus);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_corpus: %s\n", error.what());
    return 1;
  }
  return 0;
}
