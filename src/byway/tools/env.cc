// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/env.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include <fmt/format.h>

namespace byway::tools {
namespace {

constexpr std::array kVariables{
    Variable{"BYWAY_TOPOLOGY",
             "the links between ranks: host, mesh:N[@RATE[,US]], switch:N[@RATE], "
             "or a JSON file (default: host)"},
    Variable{"BYWAY_PACE",
             "slows the links: RATE[,LATENCY_US], bytes/s, or a topology (default: no limit)"},
    Variable{"BYWAY_MAPPED",
             "0: ranks of one host send messages instead of sharing memory (default: 1)"},
    Variable{"BYWAY_LATE_AFTER", "seconds after which a call under way is logged (default: 30)"},
    Variable{"BYWAY_RECORDER", "calls that each communicator's flight recorder keeps (256)"},
    Variable{"BYWAY_RECORDER_DIR", "a folder for the last calls of communicators that break"},
    Variable{"BYWAY_TRACE", "a folder for what `byway trace` merges"},
    Variable{"BYWAY_RANK", "this process's rank, as `byway run` sets it"},
    Variable{"BYWAY_SIZE", "the number of ranks, as `byway run` sets it"},
    Variable{"BYWAY_STORE", "a folder that all ranks of the job share, new for every job"},
    Variable{"BYWAY_PEER_SOCKET", "where a rank of `byway bench --against` gets its orders"},
    Variable{"BYWAY_UCX_*", "any setting of UCX by its name without UCX_ (BYWAY_UCX_TLS)"},
    Variable{"BYWAY_LAZY", "lazy mode: record or cut"},
    Variable{"BYWAY_DEFAULT", "PyTorch: 1 makes byway the default backend of CPU tensors"},
    Variable{"BYWAY_AS", "PyTorch: gloo makes that name create byway's backend"},
    Variable{"BYWAY_TORCH_EXTENSION", "PyTorch: the file of the extension module"},
    Variable{"BYWAY_NO_APT", "set-up: leave Debian packages alone"},
    Variable{"BYWAY_NO_TORCH", "set-up and tests: leave torch out"},
    Variable{"BYWAY_BIN", "tests: the `byway` command to test"},
    Variable{"BYWAY_BUILD_DIR", "tests: the build folder to test"},
};

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.back() != '*') return pattern == name;
  pattern.remove_suffix(1);
  return name.substr(0, pattern.size()) == pattern;
}

}  // namespace

std::span<const Variable> knownVariables() { return kVariables; }

std::vector<SetVariable> setVariables() {
  std::vector<SetVariable> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    if (equals == std::string_view::npos || name.substr(0, 6) != "BYWAY_") continue;
    const bool known = std::any_of(kVariables.begin(), kVariables.end(),
                                   [&](const Variable& v) { return matches(v.name, name); });
    found.push_back({std::string(name), std::string(text.substr(equals + 1)), known});
  }
  std::sort(found.begin(), found.end(),
            [](const SetVariable& a, const SetVariable& b) { return a.name < b.name; });
  return found;
}

void warnOfUnknownVariables() {
  for (const SetVariable& variable : setVariables()) {
    if (variable.known) continue;
    fmt::print(stderr,
               "byway: warning: {} is set, but nothing reads it (see docs/environment.md)\n",
               variable.name);
  }
}

}  // namespace byway::tools
