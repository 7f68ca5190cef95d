// SPDX-License-Identifier: BSD-3-Clause
// What goes over UCX: one active-message id, a fixed header by type, and the address of a process.
// Little-endian hosts only; a peer of another version is refused at connect. Private to ucx/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "byway/transport/wire.h"

namespace byway::ucx {

constexpr unsigned kAmId = 0x17;
constexpr std::uint16_t kMagic = 0x5742;
constexpr std::uint16_t kVersion = 2;
// More pieces than this are gathered into one before they are announced.
constexpr std::size_t kMaxPieces = 64;
constexpr std::size_t kMaxRkeyBytes = 512;

enum class AmType : std::uint8_t {
  Hello,      // payload: the sender's address, so that it can be answered
  Eager,      // payload: the data (Data messages) or the control payload
  Announce,   // payload: where the data lies, a PieceTable
  Finished,   // the message `id` needs its sender's memory no more
  Withdrawn,  // the sender wants the memory of message `id` back
};

struct AmHead {
  std::uint16_t magic = kMagic;
  std::uint16_t version = kVersion;
  AmType type = AmType::Hello;
  std::uint8_t outcome = 0;    // Finished
  std::uint8_t kind = 0;       // Eager, Announce: MessageKind
  std::uint8_t isPhantom = 0;  // Eager: no data stands behind `bytes`
  std::uint64_t process = 0;   // who sends
  std::uint64_t id = 0;        // Announce, Finished, Withdrawn; Hello: the process it is meant for
};

// Eager and Announce.
struct AmMessage {
  AmHead head;
  MatchKey key;
  Stamp stamp{};
  std::uint64_t bytes = 0;
  double sentAt = 0;
  std::uint32_t creditBytes = 0;
  std::uint32_t creditMessages = 0;
};
static_assert(std::is_trivially_copyable_v<AmMessage> && sizeof(AmHead) == 24 &&
              sizeof(AmMessage) == 120);

// The message as it arrived, or nullopt when it cannot be one of ours.
std::optional<AmMessage> parseHeader(std::span<const std::byte> bytes);
WireHeader toWireHeader(const AmMessage& message);
AmMessage toAmMessage(const WireHeader& header);

// One piece of an announced message: {address, bytes, packed key}; a phantom has no key.
struct RemotePiece {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  bool isPhantom = false;
  std::vector<std::byte> key;
};
void appendPiece(std::vector<std::byte>& table, const RemotePiece& piece);
// nullopt unless the table is well formed and its pieces are `bytes` in all.
std::optional<std::vector<RemotePiece>> parsePieces(std::span<const std::byte> table,
                                                    std::uint64_t bytes);

struct ProcessAddress {
  // Random: nothing of an earlier process is mistaken for it, and a greeting that does not carry it
  // comes from somebody who did not read this address from the job's store.
  std::uint64_t process = 0;
  std::uint64_t host = 0;  // the boot of an operating system
  std::uint64_t pids = 0;  // its name space of processes: memory is read within one
  std::uint32_t pid = 0;
  std::uint64_t start = 0;        // when process `pid` started (liveness.h)
  std::vector<std::byte> worker;  // UCX's own address
};
Address pack(const ProcessAddress& address);
// Why it cannot be unpacked is written to `why`.
std::optional<ProcessAddress> unpack(std::span<const std::byte> bytes, std::string& why);
// This process's, without `worker`.
ProcessAddress makeProcessAddress();

}  // namespace byway::ucx
