// SPDX-License-Identifier: BSD-3-Clause
// What identifies a call, so that ranks which call different things find out at the first message.
#pragma once

#include <complex>
#include <cstdint>
#include <string>

#include "byway/base/types.h"
#include "byway/transport/wire.h"

namespace byway {

struct Fingerprint {
  Collective collective = Collective::AllReduce;
  ReduceOp op = ReduceOp::Sum;
  DType dtype = DType::UInt8;
  bool barrier = false;
  // Every rank knows the counts of its own blocks only: no count is in the fingerprint, each
  // message carries its own (forPair).
  bool ownCounts = false;
  std::int32_t root = -1;        // rank in the communicator; -1: none, or several groups
  std::uint64_t count = 0;       // elements of all blocks together
  std::uint64_t countsHash = 0;  // of every block's count
  std::uint64_t planHash = 0;    // of the schedule
  std::uint64_t factorHash = 0;  // premul_sum's factor
};

Stamp toStamp(const Fingerprint& fingerprint);
// The stamp of one message of a call by own counts: that of the call, and the message's elements.
Stamp forPair(const Stamp& call, std::uint64_t elements);
// Whether both are of one call, whatever their messages' elements.
bool sameCall(const Stamp& a, const Stamp& b);

// "allreduce of 1024 float32 (sum), plan 0123456789abcdef"
std::string describe(const Stamp& stamp);
// What differs between what rank `self` called and what came from rank `source`, in words:
// "counts 4 and 5".
std::string difference(const Stamp& mine, int self, const Stamp& theirs, int source);

}  // namespace byway
