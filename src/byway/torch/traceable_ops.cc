// SPDX-License-Identifier: BSD-3-Clause
// The operators that compiled graphs consist of (namespace `byway`). All mutate one token, so a
// graph keeps them in program order as a data dependence; outputs are mutated arguments, since
// functionalization takes no Tensor[] returns; groups go by name.
#include <ATen/ops/empty.h>

#include <torch/library.h>

#include "byway/torch/traced_call.h"
#include "byway/torch/traced_work.h"

namespace byway::pytorch {
namespace {

// What `run` and `start` share, in the schema's order. A list that a call has no use for is None:
// an empty one takes time to hand over, and most calls would have four (bench/compiled.py).
#define BYWAY_TRACED_OPTIONS                                                 \
  "str group, str op, float? scale, Tensor? factor, int[]? peers, "          \
  "int[]? tags, SymInt[]? in_splits, SymInt[]? out_splits, int timeout_ms, " \
  "bool complex"

std::vector<int64_t> listOf(at::OptionalIntArrayRef values) {
  return values.has_value() ? values->vec() : std::vector<int64_t>{};
}

TracedCall makeCall(std::string kind, std::string group, std::string op,
                    std::optional<double> scale, std::optional<at::Tensor> factor,
                    at::OptionalIntArrayRef peers, at::OptionalIntArrayRef tags,
                    at::OptionalIntArrayRef inSplits, at::OptionalIntArrayRef outSplits,
                    int64_t timeoutMs, bool complex) {
  TracedCall call;
  call.kind = std::move(kind);
  call.group = std::move(group);
  call.op = std::move(op);
  call.scale = scale;
  call.factor = std::move(factor);
  call.peers = listOf(peers);
  call.tags = listOf(tags);
  call.inSplits = listOf(inSplits);
  call.outSplits = listOf(outSplits);
  call.timeout = std::chrono::milliseconds(timeoutMs);
  call.complex = complex;
  return call;
}

// Runs the call to its end on the caller's own tensors.
void run(const at::Tensor& /*token*/, std::string kind, at::TensorList ins, at::TensorList outs,
         std::string group, std::string op, std::optional<double> scale,
         std::optional<at::Tensor> factor, at::OptionalIntArrayRef peers,
         at::OptionalIntArrayRef tags, at::OptionalIntArrayRef inSplits,
         at::OptionalIntArrayRef outSplits, int64_t timeoutMs, bool complex) {
  auto call = makeCall(std::move(kind), std::move(group), std::move(op), scale, std::move(factor),
                       peers, tags, inSplits, outSplits, timeoutMs, complex);
  call.ins = ins.vec();
  call.outs = outs.vec();
  waitAll(issue(call, false), call.timeout);
}

// Results' buffers from their sizes, laid end to end with `dims` sizes each.
std::vector<at::Tensor> makeResults(at::IntArrayRef sizes, at::IntArrayRef dims,
                                    at::ArrayRef<at::ScalarType> dtypes, at::Device device) {
  TORCH_CHECK_VALUE(dims.size() == dtypes.size(), "byway: ", dims.size(), " results got ",
                    dtypes.size(), " types");
  std::vector<at::Tensor> results;
  size_t used = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto count = static_cast<size_t>(dims[i]);
    TORCH_CHECK_VALUE(used + count <= sizes.size(), "byway: result ", i, " has ", count, " sizes, ",
                      sizes.size() - used, " are left");
    results.push_back(
        at::empty(sizes.slice(used, count), at::TensorOptions().dtype(dtypes[i]).device(device)));
    used += count;
  }
  return results;
}

// Starts the call on copies: a graph's compiler may write to the inputs' memory before the wait,
// and does.
at::Tensor start(const at::Tensor& /*token*/, std::string kind, at::TensorList ins,
                 at::IntArrayRef sizes, at::IntArrayRef dims, at::ArrayRef<at::ScalarType> dtypes,
                 at::Device device, std::string group, std::string op, std::optional<double> scale,
                 std::optional<at::Tensor> factor, at::OptionalIntArrayRef peers,
                 at::OptionalIntArrayRef tags, at::OptionalIntArrayRef inSplits,
                 at::OptionalIntArrayRef outSplits, int64_t timeoutMs, bool complex) {
  auto call = makeCall(std::move(kind), std::move(group), std::move(op), scale, std::move(factor),
                       peers, tags, inSplits, outSplits, timeoutMs, complex);
  auto& copies = isInPlace(call.kind) ? call.outs : call.ins;
  for (const auto& in : ins) copies.push_back(in.clone(at::MemoryFormat::Contiguous));
  if (call.factor) call.factor = call.factor->clone();
  if (!isInPlace(call.kind)) call.outs = makeResults(sizes, dims, dtypes, device);
  return startTraced(std::move(call));
}

void wait(const at::Tensor& /*token*/, const at::Tensor& handle, at::TensorList outs,
          int64_t timeoutMs) {
  finishTraced(handle, outs.vec(), std::chrono::milliseconds(timeoutMs));
}

// Lets one chain of calls follow another.
void join(const at::Tensor& /*token*/, const at::Tensor& /*earlier*/) {}

}  // namespace

void defineTracedOperators() {
  // Never destroyed: operators may run while static objects go.
  static auto* const defined =
      new torch::Library(torch::Library::FRAGMENT, "byway", std::nullopt, __FILE__, __LINE__);
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  const auto define = [&](const char* schema, auto* function) {
    const auto parsed = torch::schema(schema, c10::AliasAnalysisKind::FROM_SCHEMA);
    defined->def(torch::schema(schema), tags);
    defined->impl(parsed.name().c_str(),
                  torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, function));
  };
  define("run(Tensor(t!) token, str kind, Tensor[] ins, Tensor(o!)[] outs, " BYWAY_TRACED_OPTIONS
         ") -> ()",
         &run);
  define(
      "start(Tensor(t!) token, str kind, Tensor[] ins, SymInt[] sizes, int[] dims, "
      "ScalarType[] dtypes, Device device, " BYWAY_TRACED_OPTIONS ") -> Tensor",
      &start);
  define("wait(Tensor(t!) token, Tensor handle, Tensor(o!)[] outs, int timeout_ms) -> ()", &wait);
  define("join(Tensor(t!) token, Tensor earlier) -> ()", &join);
  define("traced_done(Tensor handle) -> bool", &isTracedDone);
  define("traced_in_flight() -> int", &tracedInFlight);
}

}  // namespace byway::pytorch
