// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/call_arguments.h"

#include <charconv>
#include <cstdlib>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/schedule/loads.h"
#include "byway/tools/files.h"
#include "byway/tools/option_checks.h"
#include "byway/tools/values.h"

namespace byway::tools {
namespace {

constexpr int kDefaultRanks = 8;

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::InvalidArgument, what); }

int statedRanks(const std::string& topology) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(topology, ignored)) {
    return topologyFromJson(readFile(topology), topology).ranks;
  }
  const auto colon = topology.find(':');
  int ranks = 0;
  if (colon == std::string::npos) return kDefaultRanks;
  std::from_chars(topology.data() + colon + 1, topology.data() + topology.size(), ranks);
  return ranks > 0 ? ranks : kDefaultRanks;
}

std::vector<Group> describedGroups(const CallArguments& arguments, int ranks) {
  if (!arguments.groups.empty()) {
    if (arguments.active > 0 || arguments.fused) refuse("--groups excludes --active and --fused");
    return parseGroups(arguments.groups, "--groups");
  }
  const int active = arguments.active > 0 ? arguments.active : ranks;
  if (active > ranks) refuse(fmt::format("--active {}: there are {} ranks", active, ranks));
  return regularGroups(ranks, active, arguments.fused);
}

void checkElements(const DescribedCall& call) {
  for (const auto bytes : call.bytes) {
    if (bytes % sizeOf(call.dtype) == 0) continue;
    refuse(fmt::format("--bytes {}: not a multiple of the {} bytes of {}", bytes,
                       sizeOf(call.dtype), toString(call.dtype)));
  }
}

}  // namespace

void addCallArguments(CLI::App& sub, CallArguments& arguments) {
  sub.add_option("COLLECTIVE", arguments.collective, collectiveNames());
  sub.add_option("--groups", arguments.groups, "Members of each group: \"0,1;2,3\"")
      ->check(notEmpty("a list of groups"));
  sub.add_option("--active", arguments.active,
                 "Instead: a group of the first A ranks (default: all ranks)")
      ->check(wholeNumber(1));
  sub.add_flag("--fused", arguments.fused,
               "With --active: as many groups of A as there is room for");
  sub.add_option("--ranks", arguments.ranks, "Ranks in all (default: the topology's, else 8)")
      ->check(wholeNumber(1));
  sub.add_option("--bytes", arguments.bytes,
                 "The count of allreduce, broadcast, reduce; a rank's block; or all-to-all's "
                 "segment; a list gives each group its own (suffixes k, M, G, Ki, Mi, Gi)")
      ->capture_default_str();
  sub.add_option("--dtype", arguments.dtype, "Element type")->capture_default_str();
  sub.add_option("--op", arguments.op, "Reduction")->capture_default_str();
  sub.add_option("--root", arguments.root, "Root's position in its group")
      ->capture_default_str()
      ->check(wholeNumber(0));
  sub.add_option("--topology", arguments.topology,
                 "host, mesh:N[@RATE[,US]], switch:N[@RATE] or a JSON file (default: "
                 "BYWAY_TOPOLOGY)");
}

void requireCollective(const CallArguments& arguments, const char* instead) {
  if (!arguments.collective.empty()) return;
  refuse(fmt::format("name a COLLECTIVE ({}) or {}", collectiveNames(), instead));
}

Topology describedTopology(const std::string& text, int ranks, const std::string& fallback) {
  std::string chosen = text;
  const char* variable = std::getenv("BYWAY_TOPOLOGY");
  if (chosen.empty() && variable != nullptr) chosen = variable;
  if (chosen.empty()) chosen = fallback;
  const int count = ranks > 0 ? ranks : statedRanks(chosen);
  if (chosen == "mesh") chosen = fmt::format("mesh:{}", count);
  return parseTopology(chosen, count);
}

std::vector<std::uint64_t> blockBytesOf(Collective collective, const std::vector<Group>& groups,
                                        const std::vector<std::uint64_t>& bytes) {
  std::vector<std::uint64_t> blocks;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto count = static_cast<std::size_t>(blocksPerGroup(collective, groups[g].size()));
    blocks.insert(blocks.end(), count, bytes[bytes.size() == 1 ? 0 : g]);
  }
  return blocks;
}

double partialWeightOf(Collective collective, DType dtype, ReduceOp op) {
  if (!reduces(collective)) return 1;
  return static_cast<double>(sizeOf(accumulatorOf(dtype, op))) / static_cast<double>(sizeOf(dtype));
}

DescribedCall describeCall(const CallArguments& arguments, const std::string& fallback) {
  DescribedCall call;
  PlanRequest& request = call.request;
  request.collective = collectiveNamed(arguments.collective);
  call.dtype = dtypeNamed(arguments.dtype);
  call.op = reduceOpNamed(arguments.op);
  if (reduces(request.collective)) {
    if (const char* why = whyUnsupported(call.dtype, call.op)) {
      refuse(fmt::format("--op {} --dtype {}: {}", arguments.op, arguments.dtype, why));
    }
  }
  call.topology = describedTopology(arguments.topology, arguments.ranks, fallback);
  request.ranks = call.topology.ranks;
  request.groups = describedGroups(arguments, request.ranks);
  for (Group& group : request.groups) group.root = arguments.root;
  call.bytes = parseByteList(arguments.bytes, "--bytes");
  if (call.bytes.size() != 1 && call.bytes.size() != request.groups.size()) {
    refuse(
        fmt::format("--bytes: {} sizes for {} groups", call.bytes.size(), request.groups.size()));
  }
  checkElements(call);
  request.blockBytes = blockBytesOf(request.collective, request.groups, call.bytes);
  request.stageQuota = kStageQuota;
  request.partialWeight = partialWeightOf(request.collective, call.dtype, call.op);
  request.force = arguments.route;
  return call;
}

}  // namespace byway::tools
