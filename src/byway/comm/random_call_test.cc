// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "byway/comm/random_call_test_util.h"
#include "byway/kernels/reduce.h"

namespace byway {
namespace {

constexpr int kDTypes = static_cast<int>(DType::Complex128) + 1;
constexpr int kOps = static_cast<int>(ReduceOp::PremulSum) + 1;
constexpr std::byte kUntouched{0xA5};

int below(std::mt19937_64& random, int n) {
  return static_cast<int>(random() % static_cast<std::uint64_t>(n));
}

struct Span {
  std::size_t offset, bytes;
};

// Where a block lies in a rank's Input or Output.
Span placeOf(const Shape& shape, const RandomCall& call, int rank, bool input, int block) {
  std::size_t offset = 0;
  const std::size_t element = sizeOf(call.dtype);
  for (const int b : input ? inputBlocks(shape, rank) : outputBlocks(shape, rank)) {
    const std::size_t bytes = call.blockCounts[static_cast<std::size_t>(b)] * element;
    if (b == block) return {offset, bytes};
    offset += bytes;
  }
  return {0, 0};
}

std::size_t bytesOf(const RandomCall& call, const std::vector<int>& blocks) {
  std::size_t sum = 0;
  for (const int b : blocks) sum += call.blockCounts[static_cast<std::size_t>(b)];
  return sum * sizeOf(call.dtype);
}

// Values that differ by rank, call and position. Floats stay in a range in which sums are finite;
// their low bits differ, so that a wrong order of additions shows.
void fill(std::mt19937_64& random, DType dtype, std::byte* to, std::size_t bytes) {
  const auto real = [&] { return (static_cast<double>(random() % 20001) - 10000) / 997.0; };
  for (std::size_t at = 0; at < bytes; at += sizeOf(dtype)) {
    switch (dtype) {
      case DType::Float32: {
        const auto v = static_cast<float>(real());
        std::memcpy(to + at, &v, sizeof v);
        break;
      }
      case DType::Float64: {
        const double v = real();
        std::memcpy(to + at, &v, sizeof v);
        break;
      }
      case DType::Complex64: {
        const std::complex<float> v(static_cast<float>(real()), static_cast<float>(real()));
        std::memcpy(to + at, &v, sizeof v);
        break;
      }
      case DType::Complex128: {
        const std::complex<double> v(real(), real());
        std::memcpy(to + at, &v, sizeof v);
        break;
      }
      case DType::Bool: {
        to[at] = static_cast<std::byte>(random() % 2);
        break;
      }
      case DType::UInt8:
      case DType::UInt16:
      case DType::UInt32:
      case DType::UInt64:
      case DType::Int8:
      case DType::Int16:
      case DType::Int32:
      case DType::Int64:
      case DType::Float16:
      case DType::BFloat16:
      case DType::Float8E4M3FN:
      case DType::Float8E5M2:
      case DType::Float8E4M3FNUZ:
      case DType::Float8E5M2FNUZ: {
        const std::uint64_t v = random();  // any pattern, NaN and infinity too
        std::memcpy(to + at, &v, sizeOf(dtype));
        break;
      }
    }
  }
}

std::vector<Group> drawGroups(std::mt19937_64& random, int n) {
  std::vector<int> ranks(static_cast<std::size_t>(n));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (below(random, 2) == 0) std::shuffle(ranks.begin(), ranks.end(), random);
  const int size = 1 + below(random, n);
  const int most = n / std::max(1, size);
  const bool fused = size < n && below(random, 2) == 0;
  const int count = fused ? most : 1;
  std::vector<Group> groups;
  for (int g = 0; g < count; ++g) {
    Group group;
    group.ranks.assign(ranks.begin() + g * size, ranks.begin() + (g + 1) * size);
    group.root = below(random, size);
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

std::string RandomCall::describe() const {
  std::string out = fmt::format("{} {} {} n={} groups", toString(collective), toString(dtype),
                                toString(op), ranks);
  for (const Group& g : groups)
    out += fmt::format(" [{} root {}]", fmt::join(g.ranks, " "), g.root);
  return out + fmt::format(" count {}", blockCounts.empty() ? 0 : blockCounts[0]);
}

RandomCall drawCall(std::mt19937_64& random, int shard) {
  RandomCall call;
  call.collective = static_cast<Collective>(below(random, 8));
  call.ranks = shard == 0 ? 2 + 2 * below(random, 8) : 3 + 2 * below(random, 7);
  call.groups = drawGroups(random, call.ranks);
  if (!hasRoot(call.collective)) {
    for (Group& group : call.groups) group.root = 0;
  }
  do {
    call.dtype = static_cast<DType>(below(random, kDTypes));
    call.op = static_cast<ReduceOp>(below(random, kOps));
  } while (whyUnsupported(call.dtype, call.op) != nullptr);
  if (!reduces(call.collective)) call.op = ReduceOp::Sum;
  if (call.op == ReduceOp::PremulSum) call.factor = {0.75, 0.0};
  return call;
}

std::optional<Schedule> drawSchedule(std::mt19937_64& random, const RandomCall& call) {
  static const auto topologies = [] {
    std::vector<Topology> all;
    for (int n = 0; n <= 16; ++n) all.push_back(meshTopology(std::max(n, 1), 1e9));
    return all;
  }();
  Cell cell;
  cell.collective = call.collective;
  cell.ranks = call.ranks;
  cell.groups = call.groups;
  cell.topology = &topologies[static_cast<std::size_t>(call.ranks)];
  const DType accumulator = accumulatorOf(call.dtype, call.op);
  if (reduces(call.collective)) {
    cell.partialWeight =
        static_cast<double>(sizeOf(accumulator)) / static_cast<double>(sizeOf(call.dtype));
  }
  const Shape shape = makeShape(call.collective, call.ranks, call.groups);
  cell.blockBytes.assign(shape.blocks.size(), 1e6);
  const bool wantRelay = below(random, 8) != 0;
  std::vector<Candidate> all;
  for (const Construction& construction : constructions()) {
    for (Candidate& c : construction.candidates(cell)) {
      // Many stages make big schedules: only now and then.
      const bool big = c.messagesPerRank * call.ranks > 400;
      if (c.direct != wantRelay && (!big || below(random, 12) == 0)) all.push_back(std::move(c));
    }
  }
  if (all.empty()) return std::nullopt;
  return all[random() % all.size()].build();
}

bool usesHelpers(const VerifiedSchedule& schedule) {
  const Schedule& s = schedule.schedule();
  return std::any_of(s.transfers.begin(), s.transfers.end(), [&](const Transfer& t) {
    const int a = membershipOf(s.shape, t.from.rank).group;
    const int b = membershipOf(s.shape, t.to.rank).group;
    return a != b || a < 0;
  });
}

void drawData(std::mt19937_64& random, const VerifiedSchedule& schedule, RandomCall& call) {
  const Shape& shape = schedule.schedule().shape;
  const std::array<std::uint64_t, 6> limits{1, 9, 70, 400, 1500, 4000};
  const std::uint64_t most = limits[random() % limits.size()];
  call.blockCounts.assign(shape.blocks.size(), random() % most);
  drawDataOf(random, schedule, call);
}

void drawDataOf(std::mt19937_64& random, const VerifiedSchedule& schedule, RandomCall& call) {
  const Shape& shape = schedule.schedule().shape;
  call.memory.assign(static_cast<std::size_t>(call.ranks), {});
  for (int r = 0; r < call.ranks; ++r) {
    RankMemory& m = call.memory[static_cast<std::size_t>(r)];
    const auto inputs = inputBlocks(shape, r);
    const auto outputs = outputBlocks(shape, r);
    m.input.resize(bytesOf(call, inputs));
    fill(random, call.dtype, m.input.data(), m.input.size());
    m.output.assign(bytesOf(call, outputs), kUntouched);
    m.inPlace = call.collective != Collective::AllToAll && !inputs.empty() && !outputs.empty() &&
                below(random, 2) == 0;
    if (!m.inPlace || m.output.size() < m.input.size()) continue;
    for (const int b : inputs) {
      const Span from = placeOf(shape, call, r, true, b);
      const Span to = placeOf(shape, call, r, false, b);
      if (from.bytes > 0) {
        std::memcpy(m.output.data() + to.offset, m.input.data() + from.offset, from.bytes);
      }
    }
  }
}

std::vector<RankMemory> interpretCall(const VerifiedSchedule& schedule, const RandomCall& call) {
  std::vector<RankMemory> memory = call.memory;
  const DType accumulator =
      reduces(call.collective) ? accumulatorOf(call.dtype, call.op) : call.dtype;
  const auto fold = [&call](void* to, Width toWidth, std::span<const InterpreterInput> inputs,
                            std::size_t elements, std::uint32_t divisor) {
    std::vector<ReduceInput> operands;
    for (const InterpreterInput& in : inputs) operands.push_back({in.data, in.width});
    reduceScalar({call.dtype, call.op, toWidth, divisor, call.factor}, to, operands, elements);
  };
  interpret(schedule, call.blockCounts, sizeOf(call.dtype), sizeOf(accumulator), fold, memory);
  return memory;
}

namespace {

// The bytes that a block must have at the ranks that receive it.
std::vector<std::byte> expectedBlock(const Shape& shape, const RandomCall& call, int block) {
  const Block& b = shape.blocks[static_cast<std::size_t>(block)];
  const Group& group = shape.groups[static_cast<std::size_t>(b.group)];
  std::vector<std::byte> bytes(call.blockCounts[static_cast<std::size_t>(block)] *
                               sizeOf(call.dtype));
  const auto contribution = [&](int position) {
    const int rank = group.ranks[static_cast<std::size_t>(position)];
    return call.memory[static_cast<std::size_t>(rank)].input.data() +
           placeOf(shape, call, rank, true, block).offset;
  };
  if (bytes.empty()) return bytes;
  if (!reduces(call.collective)) {
    std::memcpy(bytes.data(), contribution(b.source), bytes.size());
    return bytes;
  }
  std::vector<ReduceInput> operands;
  for (int i = 0; i < group.size(); ++i) {
    if (i != b.destination) operands.push_back({contribution(i), Width::Element});
  }
  if (b.destination >= 0) operands.push_back({contribution(b.destination), Width::Element});
  reduceScalar(
      {call.dtype, call.op, Width::Element, static_cast<std::uint32_t>(group.size()), call.factor},
      bytes.data(), operands, bytes.size() / sizeOf(call.dtype));
  return bytes;
}

}  // namespace

void expectOracle(const VerifiedSchedule& schedule, const RandomCall& call,
                  const std::vector<RankMemory>& result) {
  const Shape& shape = schedule.schedule().shape;
  std::vector<std::vector<std::byte>> expected;
  for (std::size_t b = 0; b < shape.blocks.size(); ++b) {
    expected.push_back(expectedBlock(shape, call, static_cast<int>(b)));
  }
  for (int r = 0; r < call.ranks; ++r) {
    const RankMemory& m = result[static_cast<std::size_t>(r)];
    const RankMemory& before = call.memory[static_cast<std::size_t>(r)];
    const bool inInput = before.inPlace && before.output.size() < before.input.size();
    for (const int b : outputBlocks(shape, r)) {
      const auto& want = expected[static_cast<std::size_t>(b)];
      const Span at = placeOf(shape, call, r, inInput, b);
      const auto& buffer = inInput ? m.input : m.output;
      if (want.empty()) continue;
      ASSERT_EQ(std::memcmp(buffer.data() + at.offset, want.data(), want.size()), 0)
          << "rank " << r << " block " << b;
    }
    if (!before.inPlace) {
      ASSERT_EQ(m.input, before.input) << "rank " << r << ": input was written";
    }
  }
}

namespace {

// `buffer` in randomly many parts of whole elements.
std::vector<Buffer> cut(std::mt19937_64& random, std::byte* data, std::size_t bytes,
                        std::size_t element) {
  std::vector<Buffer> parts;
  while (bytes > 0) {
    const std::size_t elements = bytes / element;
    const std::size_t take = below(random, 3) == 0 ? element * (1 + random() % elements) : bytes;
    parts.push_back(Buffer{data, take, MemoryKind::Host, 0});
    data += take;
    bytes -= take;
  }
  return parts;
}

}  // namespace

namespace {

struct Bound {
  Segments input, output;
};

// One rank's buffers, aliased as the call says and cut at random.
Bound bindRank(std::mt19937_64& random, const Shape& shape, const RandomCall& call, int rank,
               RankMemory& m) {
  std::byte* input = m.input.data();
  std::byte* output = m.output.data();
  const bool inInput = m.inPlace && m.output.size() < m.input.size();
  if (m.inPlace && !inInput) {
    input = output + placeOf(shape, call, rank, false, inputBlocks(shape, rank)[0]).offset;
  } else if (m.inPlace) {
    output = input + placeOf(shape, call, rank, true, outputBlocks(shape, rank)[0]).offset;
  }
  const std::size_t element = sizeOf(call.dtype);
  Bound bound;
  bound.input = Segments(cut(random, input, m.input.size(), element));
  bound.output = Segments(cut(random, output, m.output.size(), element));
  return bound;
}

void expectSame(const RankMemory& memory, const RankMemory& interpreted, int rank) {
  const bool inInput = memory.inPlace && memory.output.size() < memory.input.size();
  ASSERT_TRUE(inInput || memory.output == interpreted.output) << "output of rank " << rank;
  ASSERT_TRUE((memory.inPlace && !inInput) || memory.input == interpreted.input)
      << "input of rank " << rank;
}

}  // namespace

void expectExecuted(std::mt19937_64& random, VirtualWorld& world,
                    const std::shared_ptr<const VerifiedSchedule>& schedule, const RandomCall& call,
                    const std::vector<RankMemory>& interpreted) {
  const Shape& shape = schedule->schedule().shape;
  std::vector<RankMemory> memory = call.memory;
  VirtualCall run{schedule, call.blockCounts, call.dtype, call.op, call.factor, {}, {}, 0};
  for (int r = 0; r < call.ranks; ++r) {
    Bound bound = bindRank(random, shape, call, r, memory[static_cast<std::size_t>(r)]);
    run.inputs.push_back(std::move(bound.input));
    run.outputs.push_back(std::move(bound.output));
  }
  world.run(run);
  for (int r = 0; r < call.ranks; ++r) {
    const auto rank = static_cast<std::size_t>(r);
    expectSame(memory[rank], interpreted[rank], r);
  }
}

void executeRank(std::mt19937_64& random, Engine& engine, Channel& channel,
                 const std::shared_ptr<const VerifiedSchedule>& schedule, const RandomCall& call,
                 const std::vector<RankMemory>& interpreted) {
  const Shape& shape = schedule->schedule().shape;
  std::vector<RankMemory> memory = call.memory;
  OperationRequest request;
  for (int r = 0; r < call.ranks; ++r) {
    Bound bound = bindRank(random, shape, call, r, memory[static_cast<std::size_t>(r)]);
    if (r != channel.rank()) continue;
    request.input = std::move(bound.input);
    request.output = std::move(bound.output);
  }
  request.schedule = schedule;
  request.blockCounts = call.blockCounts;
  request.dtype = call.dtype;
  request.op = call.op;
  request.factor = call.factor;
  request.timeout = 30;
  const auto operation = engine.submit(channel, std::move(request));
  engine.wait(*operation, kNever);
  if (operation->error()) std::rethrow_exception(operation->error());
  const auto rank = static_cast<std::size_t>(channel.rank());
  expectSame(memory[rank], interpreted[rank], channel.rank());
}

}  // namespace byway
