// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/control.h"

#include <algorithm>
#include <cstring>

#include "byway/transport/transport.h"

namespace byway {
namespace {

struct Fixed {
  std::uint8_t kind;
  std::uint8_t code;
  std::uint16_t textBytes;
  std::int32_t source;
  std::uint64_t communicator;
  std::int64_t sequence;
  std::uint64_t messages;
};

constexpr std::uint8_t kLastCode = static_cast<std::uint8_t>(ErrorCode::Internal);

}  // namespace

std::vector<std::byte> encode(const ControlMessage& message) {
  const std::size_t most = Transport::kControlBytes - sizeof(Fixed);
  const std::size_t text = std::min(message.text.size(), most);
  const Fixed fixed{static_cast<std::uint8_t>(message.kind),
                    static_cast<std::uint8_t>(message.code),
                    static_cast<std::uint16_t>(text),
                    message.source,
                    message.communicator,
                    message.sequence,
                    message.messages};
  std::vector<std::byte> bytes(sizeof(Fixed) + text);
  std::memcpy(bytes.data(), &fixed, sizeof(Fixed));
  if (text > 0) std::memcpy(bytes.data() + sizeof(Fixed), message.text.data(), text);
  return bytes;
}

std::optional<ControlMessage> decode(std::span<const std::byte> bytes) {
  Fixed fixed{};
  if (bytes.size() < sizeof(Fixed)) return std::nullopt;
  std::memcpy(&fixed, bytes.data(), sizeof(Fixed));
  const bool known = fixed.kind >= static_cast<std::uint8_t>(ControlKind::Broken) &&
                     fixed.kind <= static_cast<std::uint8_t>(ControlKind::Wake);
  if (!known || fixed.code > kLastCode || bytes.size() != sizeof(Fixed) + fixed.textBytes) {
    return std::nullopt;
  }
  ControlMessage message{static_cast<ControlKind>(fixed.kind),
                         fixed.communicator,
                         fixed.source,
                         static_cast<ErrorCode>(fixed.code),
                         fixed.sequence,
                         fixed.messages,
                         {}};
  message.text.resize(fixed.textBytes);
  if (fixed.textBytes > 0) {
    std::memcpy(message.text.data(), bytes.data() + sizeof(Fixed), fixed.textBytes);
  }
  return message;
}

}  // namespace byway
