// SPDX-License-Identifier: BSD-3-Clause
#include "byway/schedule/interpreter.h"

#include <cstring>

#include "byway/base/error.h"

namespace byway {
namespace {

class Interpreter {
 public:
  Interpreter(const VerifiedSchedule& verified, std::span<const std::uint64_t> counts,
              std::size_t elementBytes, std::size_t accumulatorBytes,
              const InterpreterReduce& reduce, std::span<RankMemory> memory)
      : s_(verified.schedule()), reduce_(reduce), memory_(memory) {
    for (int r = 0; r < s_.shape.ranks; ++r) {
      bindings_.push_back(bind(verified, r, {counts, {}, {}}, elementBytes, accumulatorBytes));
      stage_.emplace_back(bindings_.back().stageBytes);
      const bool inputInOutput =
          outputBlocks(s_.shape, r).size() >= inputBlocks(s_.shape, r).size();
      home_.push_back(inputInOutput ? Space::Output : Space::Input);
      check(r);
    }
  }

  void run() {
    for (const Phase& phase : s_.phases) {
      std::vector<std::vector<std::byte>> moving;
      const auto end = phase.firstTransfer + phase.transferCount;
      for (auto t = phase.firstTransfer; t < end; ++t)
        moving.push_back(gather(s_.transfers[t].from));
      for (auto t = phase.firstTransfer; t < end; ++t) {
        scatter(s_.transfers[t].to, moving[t - phase.firstTransfer]);
      }
      for (auto i = phase.firstStep; i < phase.firstStep + phase.stepCount; ++i) step(s_.steps[i]);
    }
  }

 private:
  const Binding& binding(const Ref& ref) const {
    return bindings_[static_cast<std::size_t>(ref.rank)];
  }

  void check(int rank) const {
    const Binding& b = bindings_[static_cast<std::size_t>(rank)];
    const RankMemory& m = memory_[static_cast<std::size_t>(rank)];
    BYWAY_ASSERT(!m.inPlace || s_.shape.collective != Collective::AllToAll);
    const Space home = home_[static_cast<std::size_t>(rank)];
    BYWAY_ASSERT((m.inPlace && home == Space::Output) || m.input.size() == b.inputBytes);
    BYWAY_ASSERT((m.inPlace && home == Space::Input) || m.output.size() == b.outputBytes);
  }

  std::byte* address(const Ref& ref, const Piece& piece) {
    const auto rank = static_cast<std::size_t>(ref.rank);
    const Binding& b = bindings_[rank];
    RankMemory& m = memory_[rank];
    if (ref.space == Space::Stage) return stage_[rank].data() + b.range(ref, piece).offset;
    Ref where = ref;
    if (m.inPlace) where.space = home_[rank];
    auto& buffer = where.space == Space::Input ? m.input : m.output;
    return buffer.data() + b.range(where, piece).offset;
  }

  std::vector<std::byte> gather(const Ref& ref) {
    std::vector<std::byte> bytes;
    for (const Piece& piece : s_.piecesOf(ref)) {
      const std::byte* from = address(ref, piece);
      bytes.insert(bytes.end(), from, from + binding(ref).range(ref, piece).bytes);
    }
    return bytes;
  }

  void scatter(const Ref& ref, const std::vector<std::byte>& bytes) {
    std::size_t offset = 0;
    for (const Piece& piece : s_.piecesOf(ref)) {
      const std::size_t size = binding(ref).range(ref, piece).bytes;
      BYWAY_ASSERT(offset + size <= bytes.size());
      if (size > 0) std::memcpy(address(ref, piece), bytes.data() + offset, size);
      offset += size;
    }
    BYWAY_ASSERT(offset == bytes.size());
  }

  void step(const Step& step) {
    const RankMemory& m = memory_[static_cast<std::size_t>(step.to.rank)];
    if (step.skipWhenAliased && m.inPlace) return;
    const auto pieces = s_.piecesOf(step.to);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const std::uint64_t elements = binding(step.to).cell(pieces[i]).count;
      if (elements == 0) continue;
      if (step.kind == StepKind::Copy) {
        const Ref& in = s_.inputsOf(step)[0];
        std::memmove(address(step.to, pieces[i]), address(in, s_.piecesOf(in)[i]),
                     binding(step.to).range(step.to, pieces[i]).bytes);
        continue;
      }
      std::vector<InterpreterInput> inputs;
      for (const Ref& in : s_.inputsOf(step)) {
        inputs.push_back({address(in, s_.piecesOf(in)[i]), in.width});
      }
      reduce_(address(step.to, pieces[i]), step.to.width, inputs, elements, step.divisor);
    }
  }

  const Schedule& s_;
  const InterpreterReduce& reduce_;
  std::span<RankMemory> memory_;
  std::vector<Binding> bindings_;
  // Per rank: the buffer of more blocks. In place the other's lie in it, each at its place there.
  std::vector<Space> home_;
  std::vector<std::vector<std::byte>> stage_;
};

}  // namespace

void interpret(const VerifiedSchedule& schedule, std::span<const std::uint64_t> blockCounts,
               std::size_t elementBytes, std::size_t accumulatorBytes,
               const InterpreterReduce& reduce, std::span<RankMemory> memory) {
  BYWAY_ASSERT(memory.size() == static_cast<std::size_t>(schedule.schedule().shape.ranks));
  Interpreter(schedule, blockCounts, elementBytes, accumulatorBytes, reduce, memory).run();
}

}  // namespace byway
