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
  std::int32_t root = -1;        // rank in the communicator; -1: none, or several groups
  std::uint64_t count = 0;       // elements of all blocks together
  std::uint64_t countsHash = 0;  // of every block's count
  std::uint64_t planHash = 0;    // of the schedule
  std::uint64_t factorHash = 0;  // premul_sum's factor
};

Stamp toStamp(const Fingerprint& fingerprint);

// "allreduce of 1024 float32 (sum), plan 0123456789abcdef"
std::string describe(const Stamp& stamp);
// What differs between two calls, in words: "counts 4 and 5".
std::string difference(const Stamp& mine, const Stamp& theirs);

}  // namespace byway
