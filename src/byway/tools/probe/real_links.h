// SPDX-License-Identifier: BSD-3-Clause
// A probe's links between the processes of a job: sends and receives of communicators.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "byway/comm/communicator.h"
#include "byway/tools/probe/links.h"

namespace byway::tools {

class RealLinks final : public ProbeLinks {
 public:
  // Meets the other ranks of the job. BYWAY_PACE slows what is measured, and not what the ranks
  // tell each other of it.
  RealLinks();
  ~RealLinks() override;

  int rank() const { return rank_; }
  int ranks() const override { return size_; }
  std::vector<Seconds> run(const std::vector<Flow>& flows) override;
  Seconds whole() const override { return whole_; }
  Seconds acknowledgement() override;
  double starved() override;
  double reduceRate() override;
  // Until all ranks are here.
  void barrier() { control_->barrier().wait(); }

 private:
  struct Incoming;
  Communicator& link(const Flow& flow) { return *links_.at({flow.from, flow.to}); }
  std::byte* memory(std::size_t index, std::size_t bytes);
  Work transfer(const Flow& flow, std::byte* data);
  std::vector<double> atMost(std::vector<double> mine);

  int rank_ = 0, size_ = 0;
  Seconds whole_ = 0;
  Seconds startedAt_ = 0, waitedAt_ = 0;
  std::unique_ptr<Communicator> control_;
  // Of two ranks each, one for each direction: a missing link breaks its own alone.
  std::map<std::pair<int, int>, std::unique_ptr<Communicator>> links_;
  std::map<std::pair<int, int>, bool> missing_;
  std::vector<std::vector<std::byte>> memory_;  // of incoming flows; the first of outgoing ones
};

}  // namespace byway::tools
