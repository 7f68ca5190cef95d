// SPDX-License-Identifier: BSD-3-Clause
// Collects what crosses links and what ranks do to it, and puts it in phase order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "byway/planner/stage_slots.h"
#include "byway/schedule/schedule.h"

namespace byway {

// One piece where it lies.
struct Place {
  Space space = Space::Input;
  Width width = Width::Element;
  int rank = 0;
  Piece piece;
};

// Steps of a phase run in this order: what other ranks wait for comes first.
enum class Urgency : std::uint8_t { Feeds, Final, Local };

class RouteWriter {
 public:
  RouteWriter(Shape shape, const std::string& name)
      : builder_(std::move(shape), name), slots_(builder_) {}
  RouteWriter(const RouteWriter&) = delete;
  RouteWriter& operator=(const RouteWriter&) = delete;

  const Shape& shape() const { return builder_.shape(); }
  StageSlots& slots() { return slots_; }

  // What goes from one rank's space to another's in one phase becomes one message.
  void cross(int phase, const Place& from, const Place& to);
  void reduce(int phase, Urgency urgency, const Place& to, std::span<const Place> inputs,
              int divisor);
  // Input to Output on the same rank; copies of one rank in one phase become one step.
  void copyOwn(int phase, int rank, Piece piece, bool skipWhenAliased);

  Schedule finish(Protocol protocol) &&;

 private:
  struct Crossing {
    std::uint64_t message;  // equal for what travels together; ascending in the order of sending
    std::uint64_t cell;
    Place from, to;
  };
  struct Sum {
    int phase;
    Urgency urgency;
    Place to;
    std::uint32_t firstInput, inputCount;
    int divisor;
  };
  struct Own {
    int phase, rank;
    bool skipWhenAliased;
    Piece piece;
  };

  void writeTransfers(int phase, std::size_t& next);
  void writeSums(int phase, std::size_t& next);
  void writeCopies(int phase, std::size_t& next);

  ScheduleBuilder builder_;
  StageSlots slots_;
  std::vector<Crossing> crossings_;
  std::vector<Sum> sums_;
  std::vector<Place> inputs_;
  std::vector<Own> owns_;
  int phases_ = 0;
};

}  // namespace byway
