// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/waiting_place.h"

#include "byway/base/cores.h"

namespace byway {

bool WaitingPlace::isShared(const std::shared_ptr<Board>& board) {
  if (board_ != board) leave();
  board_ = board;
  board_->setWaitsOn(currentCore());
  return board_->sharesCore(taken_);
}

void WaitingPlace::stepAside() {
  // Gone at once for the other rank: it must not step aside as well, to the same core.
  board_->setWaitsOn(-1);
  moveToAnotherCore(taken_);
}

void WaitingPlace::leave() {
  if (board_) board_->setWaitsOn(-1);
  board_.reset();
}

}  // namespace byway
