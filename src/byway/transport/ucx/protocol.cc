// SPDX-License-Identifier: BSD-3-Clause
#include "byway/transport/ucx/protocol.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <random>

#include <fmt/format.h>

#include "byway/base/hash.h"
#include "byway/transport/ucx/liveness.h"

namespace byway::ucx {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kAddressMagic = 0x3178637579617762;  // "bwayucx1"
constexpr std::size_t kMaxAddressBytes = 4096;

struct PackedAddress {
  std::uint64_t magic = kAddressMagic;
  std::uint32_t version = kVersion;
  std::uint32_t pid = 0;
  std::uint64_t process = 0;
  std::uint64_t host = 0;
  std::uint64_t pids = 0;
  std::uint64_t start = 0;
  std::uint32_t workerBytes = 0;
  std::uint32_t unused = 0;
};

struct PackedPiece {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t keyBytes = 0;
  std::uint32_t isPhantom = 0;
};

template <class T>
std::optional<T> read(std::span<const std::byte>& from) {
  T value;
  if (from.size() < sizeof value) return std::nullopt;
  std::memcpy(&value, from.data(), sizeof value);
  from = from.subspan(sizeof value);
  return value;
}

template <class T>
void write(std::vector<std::byte>& to, const T& value) {
  const std::size_t at = to.size();
  to.resize(at + sizeof value);
  std::memcpy(to.data() + at, &value, sizeof value);
}

bool hasMessage(AmType type) { return type == AmType::Eager || type == AmType::Announce; }

}  // namespace

std::optional<AmMessage> parseHeader(std::span<const std::byte> bytes) {
  const std::span<const std::byte> all = bytes;
  const auto head = read<AmHead>(bytes);
  if (!head || head->magic != kMagic || head->version != kVersion) return std::nullopt;
  if (head->type > AmType::Withdrawn) return std::nullopt;
  if (head->kind > static_cast<std::uint8_t>(MessageKind::Credit)) return std::nullopt;
  if (head->outcome > static_cast<std::uint8_t>(Outcome::WrongSize)) return std::nullopt;
  AmMessage message;
  const std::size_t expected = hasMessage(head->type) ? sizeof(AmMessage) : sizeof(AmHead);
  if (all.size() != expected) return std::nullopt;
  std::memcpy(&message, all.data(), expected);
  return message;
}

WireHeader toWireHeader(const AmMessage& message) {
  WireHeader header;
  header.kind = static_cast<MessageKind>(message.head.kind);
  header.key = message.key;
  header.stamp = message.stamp;
  header.bytes = message.bytes;
  header.sentAt = message.sentAt;
  header.creditBytes = message.creditBytes;
  header.creditMessages = message.creditMessages;
  return header;
}

AmMessage toAmMessage(const WireHeader& header) {
  AmMessage message;
  message.head.kind = static_cast<std::uint8_t>(header.kind);
  message.key = header.key;
  message.stamp = header.stamp;
  message.bytes = header.bytes;
  message.sentAt = header.sentAt;
  message.creditBytes = header.creditBytes;
  message.creditMessages = header.creditMessages;
  return message;
}

void appendPiece(std::vector<std::byte>& table, const RemotePiece& piece) {
  PackedPiece packed;
  packed.address = piece.address;
  packed.bytes = piece.bytes;
  packed.keyBytes = static_cast<std::uint32_t>(piece.key.size());
  packed.isPhantom = piece.isPhantom ? 1 : 0;
  write(table, packed);
  table.insert(table.end(), piece.key.begin(), piece.key.end());
}

std::optional<std::vector<RemotePiece>> parsePieces(std::span<const std::byte> table,
                                                    std::uint64_t bytes) {
  std::vector<RemotePiece> pieces;
  std::uint64_t left = bytes;
  while (!table.empty()) {
    const auto packed = read<PackedPiece>(table);
    if (!packed || pieces.size() == kMaxPieces) return std::nullopt;
    if (packed->keyBytes > kMaxRkeyBytes || packed->keyBytes > table.size()) return std::nullopt;
    if (packed->bytes == 0 || packed->bytes > left || packed->isPhantom > 1) return std::nullopt;
    if ((packed->isPhantom == 1) != (packed->keyBytes == 0)) return std::nullopt;
    left -= packed->bytes;
    RemotePiece piece;
    piece.address = packed->address;
    piece.bytes = packed->bytes;
    piece.isPhantom = packed->isPhantom == 1;
    piece.key.assign(table.begin(), table.begin() + packed->keyBytes);
    table = table.subspan(packed->keyBytes);
    pieces.push_back(std::move(piece));
  }
  if (left != 0) return std::nullopt;
  return pieces;
}

Address pack(const ProcessAddress& address) {
  PackedAddress packed;
  packed.pid = address.pid;
  packed.process = address.process;
  packed.host = address.host;
  packed.pids = address.pids;
  packed.start = address.start;
  packed.workerBytes = static_cast<std::uint32_t>(address.worker.size());
  // Sized once: after an insert behind a short vector g++ 12 -O3 warns of a copy out of bounds.
  Address bytes(sizeof packed + address.worker.size());
  std::memcpy(bytes.data(), &packed, sizeof packed);
  std::copy(address.worker.begin(), address.worker.end(), bytes.begin() + sizeof packed);
  return bytes;
}

std::optional<ProcessAddress> unpack(std::span<const std::byte> bytes, std::string& why) {
  const auto packed = read<PackedAddress>(bytes);
  if (!packed || packed->magic != kAddressMagic) {
    why = "this is not the address of a UCX wire";
    return std::nullopt;
  }
  if (packed->version != kVersion) {
    why = fmt::format("the peer speaks version {} of the wire, this process version {}",
                      packed->version, kVersion);
    return std::nullopt;
  }
  if (packed->workerBytes != bytes.size() || bytes.empty() || bytes.size() > kMaxAddressBytes) {
    why = "the address of a UCX wire is cut short";
    return std::nullopt;
  }
  ProcessAddress address;
  address.process = packed->process;
  address.host = packed->host;
  address.pids = packed->pids;
  address.pid = packed->pid;
  address.start = packed->start;
  address.worker.assign(bytes.begin(), bytes.end());
  return address;
}

ProcessAddress makeProcessAddress() {
  ProcessAddress address;
  std::random_device random;
  address.process = (std::uint64_t{random()} << 32) | random();
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 256> name{};
  if (boot.empty() && gethostname(name.data(), name.size() - 1) == 0) boot = name.data();
  address.host = hashText(boot);
  struct stat space {};
  if (stat("/proc/self/ns/pid", &space) == 0) address.pids = space.st_ino;
  address.pid = static_cast<std::uint32_t>(getpid());
  address.start = startOf(getpid());
  return address;
}

}  // namespace byway::ucx
