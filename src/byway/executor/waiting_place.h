// SPDX-License-Identifier: BSD-3-Clause
// Keeps ranks of one host that wait for each other from one core, or from one that more of them
// share than need be (docs/host.md, "Waiting"). The system is slow to part ranks that keep giving
// way to each other: none seems to need a core.
#pragma once

#include <memory>
#include <vector>

#include "byway/base/clock.h"
#include "byway/transport/mapped/board.h"

namespace byway {

// One wait of a rank, while it does not sleep.
class WaitingPlace {
 public:
  WaitingPlace() = default;
  ~WaitingPlace() { leave(); }
  WaitingPlace(const WaitingPlace&) = delete;
  WaitingPlace& operator=(const WaitingPlace&) = delete;

  // Says on the board on which core this rank waits. True where another rank waits on the same; if
  // there are more ranks than `cores`, where more than its part of them were there last.
  bool isCrowded(const std::shared_ptr<Board>& board, int cores);
  // After isCrowded(), without the engine's lock.
  void stepAside();
  // This rank does not wait any more, or sleeps.
  void leave();

 private:
  std::shared_ptr<Board> board_;
  int core_ = -1;
  std::vector<int> taken_;  // cores that have no room for this rank
};

}  // namespace byway
