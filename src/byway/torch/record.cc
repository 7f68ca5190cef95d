// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/record.h"

#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

namespace byway::pytorch {
namespace {

// The distance between neighbours where it is the same for all, else -1.
int strideOf(const std::vector<std::uint64_t>& ranks) {
  if (ranks.size() < 2) return 1;
  const std::uint64_t stride = ranks[1] - ranks[0];
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i] - ranks[i - 1] != stride) return -1;
  }
  return static_cast<int>(stride);
}

at::ScalarType typeOf(const Tensors& inputs, const Tensors& outputs) {
  const Tensors& some = inputs.empty() ? outputs : inputs;
  return some.empty() || !some[0].defined() ? at::kByte : some[0].scalar_type();
}

std::int64_t elements(const Tensors& tensors) {
  std::int64_t sum = 0;
  for (const auto& tensor : tensors) sum += tensor.defined() ? tensor.numel() : 0;
  return sum;
}

}  // namespace

c10::intrusive_ptr<CallWork> recorded(const CallKind& kind, const RecordedGroup& group,
                                      const Tensors& inputs, const Tensors& outputs,
                                      const std::function<c10::intrusive_ptr<CallWork>()>& submit) {
  if (!at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION)) return submit();
  const int start = group.globalRanks.empty() ? 0 : static_cast<int>(group.globalRanks[0]);
  RECORD_PARAM_COMMS_DATA(
      std::make_tuple(group.sequence, kind.isMessage),
      std::make_tuple(group.name, group.description), inputs, outputs, group.rank, kind.record,
      elements(inputs), elements(outputs), typeOf(inputs, outputs), std::vector<std::int64_t>(),
      std::vector<std::int64_t>(), start, strideOf(group.globalRanks), group.size);
  return submit();
}

}  // namespace byway::pytorch
