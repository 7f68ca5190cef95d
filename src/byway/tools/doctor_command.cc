// SPDX-License-Identifier: BSD-3-Clause
// byway doctor: what is found on this machine, what is missing, how to get it.
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "byway/base/error.h"
#include "byway/tools/call_arguments.h"
#include "byway/tools/command.h"
#include "byway/tools/env.h"
#include "byway/tools/files.h"
#include "byway/tools/python.h"
#include "byway/tools/text_table.h"
#include "byway/tools/version.h"
#include "byway/transport/ucx/ucx_wire.h"

namespace byway::tools {
namespace {

struct Finding {
  std::string what, found, advice;
  bool good = true;
  bool invalid = false;  // calls would fail
};

std::string firstLine(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// "1.22" of "1.22.0".
std::string seriesOf(const std::string& version) {
  const auto dot = version.find('.');
  return version.substr(0, dot == std::string::npos ? dot : version.find('.', dot + 1));
}

void findUcx(std::vector<Finding>& findings) {
  const UcxInfo ucx = ucxInfo();
  const bool same = seriesOf(ucx.compiledVersion) == seriesOf(ucx.runtimeVersion);
  findings.push_back({"UCX",
                      fmt::format("{} ({}), compiled with {}", ucx.runtimeVersion, ucx.libraryPath,
                                  ucx.compiledVersion),
                      same ? "" : "build again, or load the version it was compiled with", same});
  const std::string scope = firstLine("/proc/sys/kernel/yama/ptrace_scope");
  findings.push_back(
      {"process reads (CMA)", ucx.fetchWithoutCopyThread ? "work" : "do not work",
       ucx.fetchWithoutCopyThread
           ? ""
           : fmt::format("large messages cost more time of both ranks; allow them with kernel."
                         "yama.ptrace_scope=0 (now: {}) or --cap-add=SYS_PTRACE in a container",
                         scope.empty() ? "not set" : scope),
       ucx.fetchWithoutCopyThread});
}

void findMachine(std::vector<Finding>& findings) {
  findings.push_back({"cores", std::to_string(std::thread::hardware_concurrency()), "", true});
  struct statvfs shm {};
  constexpr double kMega = 1e6;
  constexpr double kNeeded = 128;  // 8 ranks were seen to hold 34 MB
  const bool present = ::statvfs("/dev/shm", &shm) == 0;
  const double free =
      present ? static_cast<double>(shm.f_bavail) * static_cast<double>(shm.f_frsize) / kMega : 0;
  findings.push_back({"/dev/shm", present ? fmt::format("{:.0f} MB free", free) : "missing",
                      free >= kNeeded ? "" : "give it 128 MB or more (docker run --shm-size=1g)",
                      free >= kNeeded});
}

void findPython(std::vector<Finding>& findings) {
  const char* const advice = "only the demo's picture needs it: ";
  std::string found;
  for (const std::string& python : pythonCandidates()) {
    if (pythonRuns(python, "import matplotlib")) {
      findings.push_back({"python", python + ", with matplotlib", "", true});
      return;
    }
    if (found.empty() && pythonRuns(python, "pass")) found = python;
  }
  if (found.empty()) {
    findings.push_back({"python", "missing", advice + std::string("install python3"), false});
  } else {
    findings.push_back({"python", found + ", without matplotlib",
                        advice + fmt::format("{} -m pip install matplotlib", found), false});
  }
}

// "TORCH;BUILT;FOLDER": the versions of this Python's torch and of the one that its byway was built
// for, without importing either.
constexpr const char* kTorchVersions = R"(
import importlib.util as u, json, os
torch, byway, version, built = u.find_spec('torch'), u.find_spec('byway'), {}, {}
if torch and torch.origin: exec(open(os.path.join(os.path.dirname(torch.origin), 'version.py')).read(), version)
folders = list(byway.submodule_search_locations or []) if byway else []
for folder in folders:
    file = os.path.join(folder, 'torch', '_C.json')
    if os.path.exists(file): built = json.load(open(file))
print(version.get('__version__', ''), built.get('torch', ''), ' '.join(folders), sep=';')
)";

void findTorch(std::vector<Finding>& findings) {
  const std::string python = pythonCommand();
  const auto said = pythonSays(python, kTorchVersions);
  const auto first = said ? said->find(';') : std::string::npos;
  const auto second = said ? said->find(';', first + 1) : std::string::npos;
  if (second == std::string::npos) return;  // no Python: found above
  const std::string torch = said->substr(0, first);
  const std::string built = said->substr(first + 1, second - first - 1);
  const std::string folder = said->substr(second + 1);
  if (torch.empty()) {
    findings.push_back({"PyTorch", python + " has none", "", true});
  } else if (built.empty()) {
    findings.push_back({"PyTorch",
                        folder.empty() ? torch + ", without byway"
                                       : torch + ", without byway's extension in " + folder,
                        "only its backend needs it: pip wheel . --no-deps --no-build-isolation, "
                        "where this torch is installed (docs/torch.md)",
                        false});
  } else {
    const bool same = seriesOf(built) == seriesOf(torch);
    findings.push_back({"PyTorch", fmt::format("{}, extension for {}", torch, built),
                        same ? ""
                             : fmt::format("install torch {}.*, or a byway that was built for {}.*",
                                           seriesOf(built), seriesOf(torch)),
                        same});
  }
}

void findSettings(std::vector<Finding>& findings) {
  for (const SetVariable& variable : setVariables()) {
    findings.push_back({variable.name, variable.value,
                        variable.known ? "" : "nothing reads it; docs/environment.md lists all",
                        variable.known});
  }
  try {
    const Topology topology = describedTopology("", 0, "host");
    findings.push_back(
        {"topology", fmt::format("{} (for {} ranks)", topology.name, topology.ranks),
         topology.bus > 0 ? "relay never pays on it; state the real links by BYWAY_TOPOLOGY" : "",
         true});
  } catch (const Error& error) {
    findings.push_back({"topology", "invalid", error.what(), false, true});
  }
}

void print(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    fmt::print("{:<20} {}\n", finding.what,
               coloured(finding.found, finding.good ? Colour::None : Colour::Bad));
    if (!finding.advice.empty()) fmt::print("{:<20} -> {}\n", "", finding.advice);
  }
}

int examine(const std::string& json) {
  if (!json.empty()) requireWritable(json);
  std::vector<Finding> findings{{"byway", versionText().substr(6), "", true}};
  findUcx(findings);
  findMachine(findings);
  findPython(findings);
  findTorch(findings);
  findSettings(findings);
  print(findings);
  if (!json.empty()) {
    nlohmann::ordered_json document{{"byway", "doctor"}, {"version", 1}};
    document["findings"] = nlohmann::ordered_json::array();
    for (const Finding& f : findings) {
      document["findings"].push_back(
          {{"what", f.what}, {"found", f.found}, {"good", f.good}, {"advice", f.advice}});
    }
    writeFileAtomically(json, document.dump(2) + "\n");
  }
  const bool invalid =
      std::any_of(findings.begin(), findings.end(), [](const Finding& f) { return f.invalid; });
  return invalid ? kFailed : kOk;
}

}  // namespace

void addDoctorCommand(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand(
      "doctor",
      "Show what is found here, what is missing, how to get it; exit status 1 with "
      "an invalid setting");
  auto json = std::make_shared<std::string>();
  sub->add_option("--json", *json, "Write the findings to FILE");
  sub->callback([&action, json] { action = [json] { return examine(*json); }; });
}

}  // namespace byway::tools
