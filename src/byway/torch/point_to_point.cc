// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/call.h"
#include "byway/torch/errors.h"
#include "byway/torch/groups.h"
#include "byway/torch/process_group.h"

namespace byway::pytorch {
namespace {

constexpr CallKind message(CallKind kind) {
  kind.isMessage = true;
  return kind;
}
constexpr auto kSend = message(BYWAY_CALL_KIND(SEND, "send", "send", "send"));
constexpr auto kRecv = message(BYWAY_CALL_KIND(RECV, "recv", "recv", "recv"));
constexpr auto kRecvAny =
    message(BYWAY_CALL_KIND(RECVANYSOURCE, "recv (any source)", "recvAnySource", "recv"));

std::uint32_t checkedTag(int tag) {
  if (tag < 0) invalid("tag " + std::to_string(tag) + " is negative");
  return static_cast<std::uint32_t>(tag);
}

}  // namespace

using WorkPtr = ProcessGroupByway::WorkPtr;

WorkPtr ProcessGroupByway::send(Tensors& tensors, int destination, int tag) {
  return call(
      kSend, tensors, {}, c10d::kUnsetTimeout,
      [&](Call& call) {
        const at::Tensor& tensor = onlyOne(tensors, "the list of tensors");
        const Region data = call.holder().input(tensor);
        call.submit([&](const CallOptions& o) {
          return call.communicator().send(data, dtypeOf(tensor, false), destination,
                                          checkedTag(tag), o);
        });
      },
      destination);
}

WorkPtr ProcessGroupByway::recv(Tensors& tensors, int source, int tag) {
  return call(
      kRecv, tensors, tensors, c10d::kUnsetTimeout,
      [&](Call& call) {
        const at::Tensor& tensor = onlyOne(tensors, "the list of tensors");
        if (source < 0) invalid("source " + std::to_string(source) + " is no rank");
        const Region data = call.holder().output(tensor);
        call.submit([&](const CallOptions& o) {
          return call.communicator().recv(data, dtypeOf(tensor, false), source, checkedTag(tag), o);
        });
      },
      source);
}

WorkPtr ProcessGroupByway::recvAnysource(Tensors& tensors, int tag) {
  return call(kRecvAny, tensors, tensors, c10d::kUnsetTimeout, [&](Call& call) {
    const at::Tensor& tensor = onlyOne(tensors, "the list of tensors");
    const Region data = call.holder().output(tensor);
    call.submit([&](const CallOptions& o) {
      return call.communicator().recv(data, dtypeOf(tensor, false), kFromAnyRank, checkedTag(tag),
                                      o);
    });
  });
}

}  // namespace byway::pytorch
