// SPDX-License-Identifier: BSD-3-Clause
// Other libraries to compare with: their environments and the programs of their ranks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "byway/base/types.h"
#include "byway/tools/watcher.h"

namespace byway::tools {

// What --against takes; in this order.
std::vector<std::string> peerNames();

// Whether they can be compared with, in values of this type; asked before anything is installed.
// Throws Error{InvalidArgument}.
void checkPeers(const std::vector<std::string>& names, DType dtype);

// How to start the ranks of a library. `program` starts them all (a launcher), or one of them.
struct PeerProgram {
  std::string name;  // as --against has it
  std::vector<std::string> program;
  bool oneRankEach = false;  // started once a rank, with kRankPlaceholder and kStorePlaceholder set
  std::vector<std::pair<std::string, std::string>> environment;
};
// In the words of `program`, and the last one in the values of `environment`.
inline constexpr const char* kRankPlaceholder = "{rank}";
inline constexpr const char* kStorePlaceholder = "{store}";
inline constexpr const char* kMemoryPlaceholder = "{memory}";  // a folder of shared memory

// Installs and compiles what is not in `cache` yet, after a line on stderr that says what. Throws
// Error{Resource} that names the library, what failed and the log. What it starts is told to
// `watcher`.
PeerProgram installPeer(const std::string& name, int ranks, const std::string& cache,
                        const Watcher& watcher);
// Byway's own ranks, measured by the same loop.
PeerProgram ownPeer();

// Where peers are kept unless an option says otherwise: XDG_CACHE_HOME or ~/.cache, /byway/peers.
std::string defaultPeerCache();

}  // namespace byway::tools
