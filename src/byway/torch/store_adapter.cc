// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/store_adapter.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "byway/base/error.h"

namespace byway::pytorch {
namespace {

// Stores written in Python need not have clone().
c10::intrusive_ptr<c10d::Store> cloneOf(const c10::intrusive_ptr<c10d::Store>& store) {
  try {
    if (auto clone = store->clone()) return clone;
  } catch (const std::exception&) {
  }
  return store;
}

}  // namespace

StoreAdapter::StoreAdapter(const c10::intrusive_ptr<c10d::Store>& store) : store_(cloneOf(store)) {}

void StoreAdapter::set(const std::string& key, const std::string& value) {
  store_->set(key, std::vector<std::uint8_t>(value.begin(), value.end()));
}

std::string StoreAdapter::get(const std::string& key, Seconds timeout) {
  constexpr Seconds kLongest = 1e6;
  const auto milliseconds =
      std::chrono::milliseconds(static_cast<long>(std::min(timeout, kLongest) * 1e3) + 1);
  try {
    store_->wait({key}, milliseconds);
  } catch (const std::exception& error) {
    // Stores report a time-out by types of their own; one that is gone says so in its words.
    throw Error(ErrorCode::Timeout, "waiting for key " + key + ": " + error.what());
  }
  const auto value = store_->get(key);
  return {value.begin(), value.end()};
}

long StoreAdapter::add(const std::string& key, long amount) { return store_->add(key, amount); }

void StoreAdapter::remove(const std::string& key) noexcept {
  try {
    store_->deleteKey(key);
  } catch (const std::exception&) {
    // A store that cannot forget, or whose process has ended.
  }
}

std::string meetingName(const std::string& group) {
  std::string name;
  for (const char c : group) name += c > ' ' && c < 127 ? c : '_';
  const char* restart = std::getenv("TORCHELASTIC_RESTART_COUNT");
  return restart != nullptr && *restart != '\0' && std::string(restart) != "0"
             ? "restart-" + std::string(restart) + "/" + name
             : name;
}

}  // namespace byway::pytorch
