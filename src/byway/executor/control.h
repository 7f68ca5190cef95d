// SPDX-License-Identifier: BSD-3-Clause
// What ranks tell each other outside of calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "byway/base/error.h"

namespace byway {

enum class ControlKind : std::uint8_t {
  Broken = 1,   // the communicator failed at the sender; text says how
  Goodbye = 2,  // the sender destroys its communicator and will not call again
  Refused = 3,  // the sender's caller got call `sequence` wrong; it takes no part in it
  Ask = 4,      // where does the receiver stand in call `sequence`? (-1: in sends and receives)
  Answer = 5,   // to that; text is an encoded RankStanding
  Wake = 6,     // look at the memory that the ranks share (transport/mapped/board.h)
};

struct ControlMessage {
  ControlKind kind = ControlKind::Broken;
  std::uint64_t communicator = 0;
  std::int32_t source = 0;  // rank in the communicator
  ErrorCode code = ErrorCode::Internal;
  std::int64_t sequence = -1;  // Goodbye: how many collectives the sender called
  // Goodbye: point-to-point messages it sent to the receiver. Ask, Answer: which question.
  std::uint64_t messages = 0;
  std::string text;
};

std::vector<std::byte> encode(const ControlMessage& message);
// Nothing for what is not a well-formed message.
std::optional<ControlMessage> decode(std::span<const std::byte> bytes);

}  // namespace byway
