// SPDX-License-Identifier: BSD-3-Clause
// A whole collective as data, for all ranks: the only thing that planner and executor share.
//
// Nothing here knows bytes, pointers, dtypes or threads. A schedule is a list of phases; the
// transfers of a phase do not depend on each other, then its local steps run in order. What may
// overlap beyond that follows from the dependence graph (dependences.h), not from phases.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "byway/schedule/shape.h"

namespace byway {

enum class Space : std::uint8_t { Input, Output, Stage };
const char* toString(Space space);

// One share of one block where it lies: in the rank's Input or Output at the place that the block
// has there, or alone in a slot of the rank's stage memory.
struct Piece {
  std::uint32_t block = 0;
  std::uint32_t share = 0;
  std::uint32_t slot = 0;  // Stage only, else 0
  bool operator==(const Piece&) const = default;
};

// A list of pieces in one space of one rank. `first` and `count` index Schedule::pieces.
struct Ref {
  Space space = Space::Input;
  Width width = Width::Element;
  std::int32_t rank = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  bool operator==(const Ref&) const = default;
};

// One message: the bytes of `from`, piece after piece, become the bytes of `to`. Both sides list
// the same shares in the same order, at the same width.
struct Transfer {
  Ref from, to;
  bool operator==(const Transfer&) const = default;
};

enum class StepKind : std::uint8_t { Reduce, Copy };

// Reduce: to = inputs folded from the left; inputs of width Element are raw contributions. `to` of
// width Element finishes the value: AVG divides by `divisor` (the group's size), then it is rounded
// once. `to` may be the same place as an input of the same width.
// Copy: to = the only input; with skipWhenAliased it does nothing where Input and Output are the
// same memory.
struct Step {
  StepKind kind = StepKind::Reduce;
  bool skipWhenAliased = false;
  std::uint32_t divisor = 1;
  Ref to;
  std::uint32_t firstInput = 0;  // index of Schedule::inputs
  std::uint32_t inputCount = 0;
  bool operator==(const Step&) const = default;
};

// How a phase's transfers travel. Messages: each is sent and received. Mapped: what a rank sends is
// published once in memory that all ranks of one host see, however many ranks read it; those that
// receive it into a stage slot do not keep it there: the sum that it is for reads it where it lies
// (rule V11).
enum class Protocol : std::uint8_t { Messages, Mapped };
const char* toString(Protocol protocol);

struct Phase {
  std::uint32_t firstTransfer = 0, transferCount = 0;
  std::uint32_t firstStep = 0, stepCount = 0;
  Protocol protocol = Protocol::Messages;
  bool operator==(const Phase&) const = default;
};

struct Schedule {
  std::string name;  // which construction made it, for people: "S3 K=24"
  Shape shape;
  std::vector<Phase> phases;
  std::vector<Transfer> transfers;   // phase by phase
  std::vector<Step> steps;           // phase by phase
  std::vector<Ref> inputs;           // of steps
  std::vector<Piece> pieces;         // of refs
  std::vector<std::uint32_t> slots;  // per rank: how many stage slots it has

  std::span<const Piece> piecesOf(const Ref& ref) const {
    return std::span(pieces).subspan(ref.first, ref.count);
  }
  std::span<const Ref> inputsOf(const Step& step) const {
    return std::span(inputs).subspan(step.firstInput, step.inputCount);
  }
  bool operator==(const Schedule&) const = default;
};

// The same on every machine; the name does not enter.
std::uint64_t hashOf(const Schedule& schedule);

// Readable, one line a transfer or step.
std::string toText(const Schedule& schedule);

// Writes schedules: the only place where indices are made.
class ScheduleBuilder {
 public:
  explicit ScheduleBuilder(Shape shape, std::string name = {});

  const Shape& shape() const { return schedule_.shape; }
  void beginPhase(Protocol protocol = Protocol::Messages);
  Ref ref(Space space, int rank, std::span<const Piece> pieces, Width width = Width::Element);
  Ref ref(Space space, int rank, Piece piece, Width width = Width::Element) {
    return ref(space, rank, std::span(&piece, 1), width);
  }
  // Within a phase all transfers come before the first step.
  void transfer(const Ref& from, const Ref& to);
  void reduce(const Ref& to, std::span<const Ref> inputs, int divisor);
  void copy(const Ref& to, const Ref& from, bool skipWhenAliased);
  std::uint32_t newSlot(int rank) { return schedule_.slots[static_cast<std::size_t>(rank)]++; }
  Schedule finish() &&;

 private:
  Schedule schedule_;
};

}  // namespace byway
