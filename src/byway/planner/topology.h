// SPDX-License-Identifier: BSD-3-Clause
// What the planner knows of the machine: rates of directed links, ports and the shared bus, and the
// fixed costs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace byway {

struct Topology {
  std::string name;  // "mesh:8", a file's name
  int ranks = 0;
  std::vector<double> links;   // [from * ranks + to], bytes/s; 0: no link
  std::vector<double> egress;  // per rank, bytes/s; infinity: no limit
  std::vector<double> ingress;
  double bus = 0;      // bytes/s that all transfers share (one host's memory); 0: no limit
  double alpha = 0;    // seconds from a send to the start of its transfer
  double message = 0;  // seconds of a rank's own time per message, sent or received
  double reduce = 0;   // bytes/s of one input of a reduction; 0: free

  double link(int from, int to) const {
    return links[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) +
                 static_cast<std::size_t>(to)];
  }
  // Identifies it across ranks: any difference changes it. The name does not enter.
  std::uint64_t hash() const;
  bool uniformMesh() const;  // all links alike, no port or bus limits
};

// "host", "mesh:N", "mesh:N@RATE[,LATENCY_US]", "switch:N[@RATE]" with RATE in bytes/s (suffixes
// k, M, G decimal), or the path of a JSON file. `ranks` is the size of the communicator; a preset
// that states another is an error. Throws Error{InvalidArgument} naming what is wrong and where.
Topology parseTopology(std::string_view text, int ranks);
// The same with as many ranks as the text or the file states ("host" states none).
Topology parseTopology(std::string_view text);
// The links among some of its ranks, which are numbered in the order of the list.
Topology partOf(const Topology& whole, std::span<const int> ranks);
Topology hostTopology(int ranks);
Topology meshTopology(int ranks, double bytesPerSecond, double alpha = 0, double message = 0);
Topology switchTopology(int ranks, double bytesPerSecond, double alpha = 0);

// Kind "topology" of design JSON; `source` names the file in errors. Unknown fields are errors.
std::string toJson(const Topology& topology);
Topology topologyFromJson(std::string_view json, const std::string& source);

}  // namespace byway
