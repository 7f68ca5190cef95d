// SPDX-License-Identifier: BSD-3-Clause
// Runs a schedule for all ranks on host vectors, phase by phase, in one thread: the oracle for the
// executor.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "byway/schedule/bind.h"

namespace byway {

struct RankMemory {
  std::vector<std::byte> input;
  std::vector<std::byte> output;
  // Input's blocks lie in `output`, each at its place there; or Output's in `input`, where that has
  // more blocks (reduce-scatter, scatter). Not for all-to-all. The other vector is not looked at.
  bool inPlace = false;
};

struct InterpreterInput {
  const void* data;
  Width width;
};
// to = fold(inputs) over `elements`, finished when toWidth is Element.
using InterpreterReduce =
    std::function<void(void* to, Width toWidth, std::span<const InterpreterInput> inputs,
                       std::size_t elements, std::uint32_t divisor)>;

// memory[r] holds rank r's buffers and receives its results; blockCounts in elements.
void interpret(const VerifiedSchedule& schedule, std::span<const std::uint64_t> blockCounts,
               std::size_t elementBytes, std::size_t accumulatorBytes,
               const InterpreterReduce& reduce, std::span<RankMemory> memory);

}  // namespace byway
