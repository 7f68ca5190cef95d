// SPDX-License-Identifier: BSD-3-Clause
// What other processes send: the first byte of an input chooses one of the readers. What a reader
// takes is written as it was read.
#include <algorithm>
#include <cstring>

#include "byway/comm/plan_data.h"
#include "byway/executor/control.h"
#include "byway/executor/inquiry.h"
#include "byway/transport/transport.h"
#include "byway/transport/ucx/protocol.h"
#include "fuzz_target.h"
#include "wire_samples.h"

namespace byway {
namespace {

using fuzz::Reader;
using Bytes = std::span<const std::byte>;

bool equal(Bytes a, Bytes b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

void readHeader(Bytes bytes) {
  const auto message = ucx::parseHeader(bytes);
  if (!message || bytes.size() < sizeof(ucx::AmMessage)) return;
  const WireHeader header = ucx::toWireHeader(*message);
  const ucx::AmMessage again = ucx::toAmMessage(header);
  fuzz::require(header.kind <= MessageKind::Credit, "a header has a known kind");
  fuzz::require(
      again.key == message->key && again.stamp == message->stamp && again.bytes == message->bytes,
      "a header survives its translation");
}

// The first eight bytes state how many bytes the pieces have in all.
void readPieces(Bytes bytes) {
  std::uint64_t total = 0;
  if (bytes.size() < sizeof total) return;
  std::memcpy(&total, bytes.data(), sizeof total);
  const Bytes table = bytes.subspan(sizeof total);
  const auto pieces = ucx::parsePieces(table, total);
  if (!pieces) return;
  std::vector<std::byte> again;
  for (const ucx::RemotePiece& piece : *pieces) ucx::appendPiece(again, piece);
  fuzz::require(equal(again, table), "a table of pieces survives");
}

void readAddress(Bytes bytes) {
  std::string why;
  const auto address = ucx::unpack(bytes, why);
  fuzz::require(address.has_value() == why.empty(), "an address or the reason why not");
  if (!address) return;
  const auto again = ucx::unpack(ucx::pack(*address), why);
  fuzz::require(again && again->process == address->process && again->worker == address->worker,
                "an address survives");
}

void readControl(Bytes bytes) {
  const auto message = decode(bytes);
  if (!message) return;
  if (bytes.size() > Transport::kControlBytes) return;
  fuzz::require(equal(encode(*message), bytes), "a control message survives");
}

void readStanding(Bytes bytes) {
  constexpr int kRanks = 100;
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto standing = decodeStanding(text, kRanks);
  if (!standing) return;
  for (const int rank : standing->waitsFor) {
    fuzz::require(rank >= 0 && rank < kRanks, "a standing names ranks that there are");
  }
  const auto again = decodeStanding(encode(*standing), kRanks);
  fuzz::require(again && again->standing == standing->standing && again->calls == standing->calls &&
                    again->waitsFor == standing->waitsFor,
                "a standing survives");
}

void readPlan(Bytes bytes) {
  try {
    const Plan plan = decodePlan(bytes, fuzz::sampleRequest());
    fuzz::require(plan.chosen && plan.direct, "a plan that was taken is whole");
  } catch (const Error&) {  // a refusal may carry any code: the sender's, or ours
  }
}

}  // namespace
}  // namespace byway

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace byway;
  if (size == 0) return 0;
  const auto bytes = fuzz::bytesOf(data + 1, size - 1);
  switch (static_cast<Reader>(data[0])) {
    case Reader::Header:
      readHeader(bytes);
      break;
    case Reader::Pieces:
      readPieces(bytes);
      break;
    case Reader::Address:
      readAddress(bytes);
      break;
    case Reader::Control:
      readControl(bytes);
      break;
    case Reader::Standing:
      readStanding(bytes);
      break;
    case Reader::Plan:
      readPlan(bytes);
      break;
  }
  return 0;
}
