// SPDX-License-Identifier: BSD-3-Clause
// One rank of the demo: its communicators, and how all ranks start together and compare notes.
#pragma once

#include <map>
#include <memory>
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
  // Meets the other ranks: one communicator of all without pacing, for control; per number of
  // ranks in `sizes` one paced that goes direct and one paced that chooses, on that number of the
  // first ranks. `topologyFolder` holds a file for each size (topologyFile).
  Team(const DemoSettings& settings, const std::vector<int>& sizes,
       const std::string& topologyFolder);

  int rank() const { return rank_; }
  bool takesPart(const DemoCell& cell) const { return rank_ < cell.ranks; }
  // Null on ranks that take no part in cells of so many ranks.
  Communicator* communicator(int ranks, Way way);

  // A time on the host's clock that all ranks learn before it comes, and wait for.
  Seconds agreeOnStart();
  // Until all ranks are here.
  void barrier();
  std::vector<RankReport> exchange(const RankReport& mine);

 private:
  void warmUp();
  int rank_, size_;
  std::unique_ptr<Communicator> control_;
  std::map<int, std::unique_ptr<Communicator>> direct_, chosen_;
};

std::string topologyFile(const std::string& folder, int ranks);

}  // namespace byway::tools
