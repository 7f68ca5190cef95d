// SPDX-License-Identifier: BSD-3-Clause
// One rank of the demo: its communicators, and how all ranks start together and compare notes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "byway/comm/communicator.h"
#include "byway/tools/demo/cells.h"
#include "byway/tools/demo/events.h"

namespace byway::tools {

// What a rank has to say about a run.
struct RankReport {
  Seconds end = 0, late = 0, cpu = 0;
  std::uint64_t wrong = 0, checked = 0, helperStage = 0;
};

class Team {
 public:
  // Meets the other ranks on one communicator of all without pacing, for control.
  // `topologyFolder` holds a file for each kind of links (topologyFile).
  Team(const DemoSettings& settings, std::string topologyFolder);

  int rank() const { return rank_; }
  // The communicators of a cell's calls, on its links and of its number of the first ranks; empty
  // on ranks that take no part. The first time all ranks must ask for them, in the same order.
  std::vector<Communicator*> communicators(const DemoCell& cell, Way way);

  // A time on the host's clock that all ranks learn before it comes, and wait for.
  Seconds agreeOnStart();
  // Until all ranks are here.
  void barrier();
  std::vector<RankReport> exchange(const RankReport& mine);

 private:
  using Communicators = std::vector<std::unique_ptr<Communicator>>;
  Communicators meet(const DemoCell& cell, Way way);
  void warmUp(Communicator& communicator) const;

  DemoSettings settings_;
  std::string topologyFolder_;
  int rank_, size_;
  std::unique_ptr<FileStore> store_;
  std::unique_ptr<Communicator> control_;
  std::map<std::pair<std::string, Way>, Communicators> met_;
};

std::string topologyFile(const std::string& folder, const DemoCell& cell);

}  // namespace byway::tools
