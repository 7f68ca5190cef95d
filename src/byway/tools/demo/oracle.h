// SPDX-License-Identifier: BSD-3-Clause
// Inputs that are a formula of rank, cell, call and place, and what every output must then be. It
// shares nothing with the library but the cell's description.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "byway/tools/demo/cells.h"

namespace byway::tools {

// Throws Error{InvalidArgument} for types whose values it has no formula for.
void requireOracle(DType dtype);

// One rank's buffers of one cell, each with guard bytes around it, in which nothing may change.
class DemoBuffers {
 public:
  DemoBuffers(const DemoCell& cell, int rank);

  std::span<std::byte> input() { return part(input_, inputBytes_); }
  std::span<std::byte> output() { return part(output_, outputBytes_); }

  // Fills the input for one call, and the output with what no result holds.
  void prepare(int call);
  // Elements of the output that are wrong, of the input that changed, and bytes of the guards that
  // changed.
  std::uint64_t countWrong(int call) const;
  // Elements that countWrong looks at.
  std::uint64_t checked() const;

 private:
  // Element i of a part of the output is the sum of element `offset` + i of the inputs of `from`.
  struct Part {
    std::vector<int> from;
    std::uint64_t offset = 0;
  };
  static std::span<std::byte> part(std::vector<std::byte>& memory, std::size_t bytes);
  void layOut(int group, int position);
  std::uint32_t keyOf(int rank, int call) const;
  template <typename Format>
  void fill(int call);
  template <typename Format>
  std::uint64_t wrongElements(int call) const;
  std::uint64_t wrongGuards() const;

  std::size_t blockBytes() const;

  const DemoCell& cell_;
  int rank_;
  std::uint64_t count_ = 0;  // of the rank's group
  std::vector<Part> parts_;
  std::size_t inputBytes_ = 0, outputBytes_ = 0;
  std::vector<std::byte> input_, output_;
};

}  // namespace byway::tools
