// SPDX-License-Identifier: BSD-3-Clause
// The nodes that stand for a recorded call in the lazy graph.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <torch/csrc/lazy/ts_backend/ts_node.h>

namespace byway::pytorch::lazy {

// Held by everything that may still run a record; the last one releases it.
class RecordUse {
 public:
  explicit RecordUse(std::int64_t sequence) : sequence_(sequence) {}
  ~RecordUse();
  RecordUse(const RecordUse&) = delete;
  RecordUse& operator=(const RecordUse&) = delete;
  std::int64_t sequence() const { return sequence_; }

 private:
  const std::int64_t sequence_;
};

// Operators of the graph (node_ops.cc). The token is an int64[1] that every call takes and passes
// on, increased by one: so calls run in the order in which they were recorded, none can be merged
// or left out, and its value is the number of the record to run.
enum class NodeKind : char {
  Run,     // (token, inputs...) -> token, results...: makes the call
  Start,   // (token, inputs...) -> token, handle: begins it
  Finish,  // (handle) -> results...: waits for it
  Await,   // (token, handle) -> token: waits for one without results, in order
};

class CollNode final : public torch::lazy::TsNode {
 public:
  // `isUnwaited`: a Finish that nobody but the step waits for, since the Work was dropped.
  CollNode(NodeKind kind, torch::lazy::OpList operands, std::vector<torch::lazy::Shape> shapes,
           std::shared_ptr<RecordUse> use, bool isUnwaited = false);
  ~CollNode() override;
  torch::lazy::TSOpVector Lower(std::shared_ptr<torch::jit::GraphFunction> function,
                                torch::lazy::TSLoweringContext* context) const override;

  bool passesToken() const { return kind_ != NodeKind::Finish; }
  // Whether running it may have to wait for what is only to come.
  bool isUnwaited() const;
  static bool anyUnwaited() { return unwaited_ > 0; }

 private:
  static std::atomic<std::int64_t> unwaited_;
  const NodeKind kind_;
  const bool isUnwaited_;
  const std::shared_ptr<RecordUse> use_;
};

}  // namespace byway::pytorch::lazy
