// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/fingerprint.h"

#include <fmt/format.h>

namespace byway {
namespace {

constexpr int kDTypeShift = 8;
constexpr int kOpShift = 16;
constexpr int kBarrierShift = 24;
constexpr int kRootShift = 32;

struct Call {
  std::uint8_t collective, dtype, op;
  bool barrier;
  std::int32_t root;
};

Call unpack(std::uint64_t word) {
  return {static_cast<std::uint8_t>(word), static_cast<std::uint8_t>(word >> kDTypeShift),
          static_cast<std::uint8_t>(word >> kOpShift), ((word >> kBarrierShift) & 1) != 0,
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
                    static_cast<std::uint64_t>(static_cast<std::uint32_t>(f.root)) << kRootShift;
  return {word, f.count, f.countsHash, f.planHash, f.factorHash, 0};
}

std::string describe(const Stamp& stamp) {
  const Call call = unpack(stamp[0]);
  if (call.barrier) return "barrier";
  std::string out = fmt::format("{} of {} {}", collectiveName(call), stamp[1],
                                toString(static_cast<DType>(call.dtype)));
  if (reducing(call)) out += fmt::format(" ({})", opName(call));
  if (call.root >= 0) out += fmt::format(", root {}", call.root);
  return out + fmt::format(", plan {:016x}", stamp[3]);
}

std::string difference(const Stamp& mine, const Stamp& theirs) {
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
  if (mine[1] != theirs[1])
    add(fmt::format("counts {} and {}", mine[1], theirs[1]));
  else if (mine[2] != theirs[2])
    add("counts of single blocks");
  if (mine[4] != theirs[4]) add("factors of premul_sum");
  if (out.empty() && mine[3] != theirs[3]) {
    add(fmt::format("plans {:016x} and {:016x}: groups, settings or topologies differ", mine[3],
                    theirs[3]));
  }
  return out;
}

}  // namespace byway
