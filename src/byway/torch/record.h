// SPDX-License-Identifier: BSD-3-Clause
// torch's records of communication, which its profiler and trace tools read.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "byway/torch/call.h"
#include "byway/torch/work.h"

namespace byway::pytorch {

struct RecordedGroup {
  std::int64_t sequence;
  int rank, size;
  const std::string& name;
  const std::string& description;
  const std::vector<std::uint64_t>& globalRanks;
};

// Runs `submit` inside a record of the call, if anybody records.
c10::intrusive_ptr<CallWork> recorded(const CallKind& kind, const RecordedGroup& group,
                                      const Tensors& inputs, const Tensors& outputs,
                                      const std::function<c10::intrusive_ptr<CallWork>()>& submit);

}  // namespace byway::pytorch
