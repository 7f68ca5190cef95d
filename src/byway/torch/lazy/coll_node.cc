// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/lazy/coll_node.h"

#include <utility>

#include "byway/torch/lazy/record_table.h"

namespace byway::pytorch::lazy {
namespace {

const char* nameOf(NodeKind kind) {
  switch (kind) {
    case NodeKind::Run:
      return "byway_lazy::run";
    case NodeKind::Start:
      return "byway_lazy::start";
    case NodeKind::Finish:
      return "byway_lazy::finish";
    case NodeKind::Await:
      return "byway_lazy::await";
  }
  return "";
}

// Only what the graph depends on: two calls of unlike operators and equal shapes share a graph.
torch::lazy::hash_t seedOf(NodeKind kind, const std::vector<torch::lazy::Shape>& shapes) {
  torch::lazy::hash_t seed = torch::lazy::MHash(static_cast<int>(kind));
  for (const auto& shape : shapes) seed = torch::lazy::HashCombine(seed, shape.hash(true));
  return seed;
}

}  // namespace

std::atomic<std::int64_t> CollNode::unwaited_ = 0;

RecordUse::~RecordUse() { RecordTable::instance().release(sequence_); }

CollNode::CollNode(NodeKind kind, torch::lazy::OpList operands,
                   std::vector<torch::lazy::Shape> shapes, std::shared_ptr<RecordUse> use,
                   bool isUnwaited)
    : TsNode(torch::lazy::OpKind::Get(nameOf(kind)), operands,
             std::vector<torch::lazy::Shape>(shapes), shapes.size(), seedOf(kind, shapes)),
      kind_(kind),
      isUnwaited_(isUnwaited),
      use_(std::move(use)) {
  if (isUnwaited_) ++unwaited_;
}

CollNode::~CollNode() {
  if (isUnwaited_) --unwaited_;
}

bool CollNode::isUnwaited() const {
  return isUnwaited_ && !RecordTable::instance().hasFinished(use_->sequence());
}

torch::lazy::TSOpVector CollNode::Lower(std::shared_ptr<torch::jit::GraphFunction> function,
                                        torch::lazy::TSLoweringContext* context) const {
  const auto graph = function->graph();
  std::vector<torch::jit::NamedValue> arguments;
  std::vector<torch::jit::Value*> inputs;
  const bool listsInputs = kind_ == NodeKind::Run || kind_ == NodeKind::Start;
  for (std::size_t i = 0; i < operands().size(); ++i) {
    torch::jit::Value* value = context->GetOutputOp(operand(i));
    if (listsInputs && i > 0) {
      inputs.push_back(value);
    } else {
      arguments.emplace_back(value);
    }
  }
  if (listsInputs) {
    arguments.emplace_back(
        graph->insertNode(graph->createList(c10::TensorType::get(), inputs))->output());
  }
  auto* results = graph->insert(op().op, arguments);
  auto* unpacked = graph->insertNode(graph->createListUnpack(results, num_outputs()));
  return {unpacked->outputs().begin(), unpacked->outputs().end()};
}

}  // namespace byway::pytorch::lazy
