// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/fingerprint.h"

#include <fmt/format.h>

namespace byway {
namespace {

constexpr int kDTypeShift = 8;
constexpr int kOpShift = 16;
constexpr int kBarrierShift = 24;
constexpr int kOwnCountsShift = 25;
constexpr int kRootShift = 32;
constexpr std::size_t kPairWord = 5;

struct Call {
  std::uint8_t collective, dtype, op;
  bool barrier, ownCounts;
  std::int32_t root;
};

Call unpack(std::uint64_t word) {
  return {static_cast<std::uint8_t>(word),
          static_cast<std::uint8_t>(word >> kDTypeShift),
          static_cast<std::uint8_t>(word >> kOpShift),
          ((word >> kBarrierShift) & 1) != 0,
          ((word >> kOwnCountsShift) & 1) != 0,
          static_cast<std::int32_t>(word >> kRootShift)};
}

// The numbers come from the wire, so they may name nothing.
std::string collectiveName(const Call& call) {
  if (call.barrier) return "barrier";
  return toString(static_cast<Collective>(call.collective));
}

std::string opName(const Call& call) { return toString(static_cast<ReduceOp>(call.op)); }

bool reducing(const Call& call) { return reduces(static_cast<Collective>(call.collective)); }

}  // namespace

Stamp toStamp(const Fingerprint& f) {
  const auto word = static_cast<std::uint64_t>(f.collective) |
                    static_cast<std::uint64_t>(f.dtype) << kDTypeShift |
                    static_cast<std::uint64_t>(f.op) << kOpShift |
                    static_cast<std::uint64_t>(f.barrier) << kBarrierShift |
                    static_cast<std::uint64_t>(f.ownCounts) << kOwnCountsShift |
                    static_cast<std::uint64_t>(static_cast<std::uint32_t>(f.root)) << kRootShift;
  return {word, f.count, f.countsHash, f.planHash, f.factorHash, 0};
}

Stamp forPair(const Stamp& call, std::uint64_t elements) {
  Stamp stamp = call;
  stamp[kPairWord] = elements;
  return stamp;
}

bool sameCall(const Stamp& a, const Stamp& b) { return forPair(a, 0) == forPair(b, 0); }

std::string describe(const Stamp& stamp) {
  const Call call = unpack(stamp[0]);
  if (call.barrier) return "barrier";
  const std::string dtype = toString(static_cast<DType>(call.dtype));
  std::string out =
      call.ownCounts
          ? fmt::format("{} of {} by each rank's own counts", collectiveName(call), dtype)
          : fmt::format("{} of {} {}", collectiveName(call), stamp[1], dtype);
  if (reducing(call)) out += fmt::format(" ({})", opName(call));
  if (call.root >= 0) out += fmt::format(", root {}", call.root);
  return stamp[3] == 0 ? out : out + fmt::format(", plan {:016x}", stamp[3]);
}

std::string difference(const Stamp& mine, int self, const Stamp& theirs, int source) {
  const Call a = unpack(mine[0]);
  const Call b = unpack(theirs[0]);
  std::string out;
  const auto add = [&out](std::string text) { out += (out.empty() ? "" : ", ") + std::move(text); };
  if (collectiveName(a) != collectiveName(b)) {
    add(fmt::format("collectives {} and {}", collectiveName(a), collectiveName(b)));
  }
  if (a.dtype != b.dtype) {
    add(fmt::format("dtypes {} and {}", toString(static_cast<DType>(a.dtype)),
                    toString(static_cast<DType>(b.dtype))));
  }
  if (a.op != b.op && (reducing(a) || reducing(b))) {
    add(fmt::format("operations {} and {}", opName(a), opName(b)));
  }
  if (a.root != b.root) add(fmt::format("roots {} and {}", a.root, b.root));
  if (a.ownCounts != b.ownCounts)
    add("counts that all ranks know and counts that each rank has of its own");
  else if (mine[1] != theirs[1])
    add(fmt::format("counts {} and {}", mine[1], theirs[1]));
  else if (mine[2] != theirs[2])
    add("counts of single blocks");
  if (out.empty() && mine[kPairWord] != theirs[kPairWord]) {
    add(fmt::format("rank {} sends {} elements to rank {}, which expects {}", source,
                    theirs[kPairWord], self, mine[kPairWord]));
  }
  if (mine[4] != theirs[4]) add("factors of premul_sum");
  if (out.empty() && mine[3] != theirs[3]) {
    add(fmt::format("plans {:016x} and {:016x}: groups, settings or topologies differ", mine[3],
                    theirs[3]));
  }
  return out;
}

}  // namespace byway
