// SPDX-License-Identifier: BSD-3-Clause
// The processes of one library under comparison, seen from the bench. Between its turns a team is
// stopped (SIGSTOP), so that what its ranks do while they wait takes no core from the others.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "byway/base/clock.h"
#include "byway/tools/bench/peers/peer_install.h"
#include "byway/tools/demo/cells.h"
#include "byway/tools/rank_process.h"
#include "byway/tools/watcher.h"

namespace byway::tools {

class PeerTeam {
 public:
  // Starts the ranks; `folder` is for its socket, store and log. Processes are told to `watcher`.
  PeerTeam(const PeerProgram& program, int ranks, const std::string& folder,
           const Watcher& watcher);
  ~PeerTeam();
  PeerTeam(const PeerTeam&) = delete;
  PeerTeam& operator=(const PeerTeam&) = delete;

  // Waits for all ranks. Throws Error{Resource} with the end of the log where they do not come.
  void meet(Seconds timeout);

  struct Checked {
    std::uint64_t wrong = 0, values = 0;
    std::string refusal;  // why the library does not do this cell; "": it does
  };
  // Makes the cell's buffers; one call, whose values are compared.
  Checked prepare(const DemoCell& cell, Seconds timeout);
  // One call to wake up, then `repeats` calls, all ranks from the same time on. Returns the time of
  // a call: until the last rank is through.
  Seconds run(std::uint32_t repeats, Seconds timeout);

  const std::string& name() const { return name_; }
  // Files of shared memory that its ranks have open by name: a killed library leaves them.
  std::set<std::string> sharedMemory() const;

 private:
  void start(const PeerProgram& program, const std::string& store);
  void startOne(const PeerProgram& program, const std::vector<std::string>& arguments, int rank);
  void acceptOne(Seconds end);
  void signalAll(int signal) const;
  template <class Command>
  auto ask(const Command& command, Seconds timeout);
  [[noreturn]] void lost(const std::string& what) const;

  std::string name_, socketPath_, log_;
  const Watcher& watcher_;
  int listener_ = -1;
  std::vector<RankProcess> started_;  // launchers, or ranks
  std::vector<int> connections_;      // by rank
  std::vector<pid_t> ranks_;
};

}  // namespace byway::tools
