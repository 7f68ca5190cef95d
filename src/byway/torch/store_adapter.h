// SPDX-License-Identifier: BSD-3-Clause
// torch's store as Byway's.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "byway/comm/store.h"

namespace byway::pytorch {

class StoreAdapter final : public Store {
 public:
  // Works on a clone: a TCPStore's connection must not be shared between threads.
  explicit StoreAdapter(const c10::intrusive_ptr<c10d::Store>& store);
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Seconds timeout) override;
  long add(const std::string& key, long amount) override;
  void remove(const std::string& key) noexcept override;

 private:
  c10::intrusive_ptr<c10d::Store> store_;
};

// The name under which a group's ranks meet: tells the runs of a restarted job apart, whose agents
// keep the store (TORCHELASTIC_RESTART_COUNT). Groups of one name in one run are told apart by the
// number that the first rank draws.
std::string meetingName(const std::string& group);

}  // namespace byway::pytorch
