// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

namespace byway::pytorch {

// One torch.distributed call as a compiled graph states it. What `ins` and `outs` hold depends on
// the kind: in-place kinds (all_reduce, broadcast, reduce, all_reduce_coalesced) have `outs` only,
// holding the input on entry.
struct TracedCall {
  std::string kind;
  std::vector<at::Tensor> ins;
  std::vector<at::Tensor> outs;
  std::string group;            // its name, as c10d registers it
  std::string op;               // "sum", ..., "premul_sum"; empty where the kind does not reduce
  std::optional<double> scale;  // PREMUL_SUM's factor, one of the two
  std::optional<at::Tensor> factor;
  std::vector<int64_t> peers;  // group ranks: the root, the peer, or one per entry of ins then
                               // outs; -1 is any source
  std::vector<int64_t> tags;   // as peers
  std::vector<int64_t> inSplits;
  std::vector<int64_t> outSplits;
  std::chrono::milliseconds timeout;  // negative: the group's own
  bool complex = false;               // ins and outs are real views of complex tensors
};

// True where the kind's `outs` hold its input.
bool isInPlace(const std::string& kind);

// Starts the call on its group; the tensors must live until every returned work is done. Empty
// where there is nothing to wait for. Throws ValueError for an unknown kind or operation.
std::vector<c10::intrusive_ptr<c10d::Work>> issue(TracedCall& call, bool async);

void waitAll(const std::vector<c10::intrusive_ptr<c10d::Work>>& works,
             std::chrono::milliseconds timeout);

}  // namespace byway::pytorch
