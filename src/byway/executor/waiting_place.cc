// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/waiting_place.h"

#include <map>

#include "byway/base/cores.h"

namespace byway {

bool WaitingPlace::isCrowded(const std::shared_ptr<Board>& board, int cores) {
  if (board_ != board) leave();
  board_ = board;
  core_ = currentCore();
  board_->setSeat({core_, true});
  const bool forAll = board_->ranks() <= cores;
  const int most = forAll ? 1 : (board_->ranks() + cores - 1) / cores;
  std::map<int, int> onCore;
  for (int rank = 0; rank < board_->ranks(); ++rank) {
    const Board::Seat seat = board_->seatOf(rank);
    if (seat.core >= 0 && (seat.waits || !forAll)) ++onCore[seat.core];
  }
  taken_.clear();
  for (const auto& [core, ranks] : onCore) {
    if (core != core_ && ranks >= most) taken_.push_back(core);
  }
  return core_ >= 0 && onCore[core_] > most;
}

void WaitingPlace::stepAside() {
  // Gone at once for the other ranks: they must not step aside as well, to the same core.
  board_->setSeat({});
  moveToAnotherCore(taken_);
  core_ = currentCore();
  board_->setSeat({core_, false});
}

void WaitingPlace::leave() {
  if (board_) board_->setSeat({core_, false});
  board_.reset();
}

}  // namespace byway
