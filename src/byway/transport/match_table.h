// SPDX-License-Identifier: BSD-3-Clause
// Where messages wait for each other: first in, first out for each MatchKey.
#pragma once

#include <cstddef>
#include <unordered_map>

#include "byway/base/hash.h"
#include "byway/transport/wire.h"

namespace byway {

struct MatchKeyHash {
  std::size_t operator()(const MatchKey& key) const {
    std::uint64_t hash = hashMix(key.communicator, key.sequence);
    hash = hashMix(hash, (std::uint64_t{key.transfer} << 32) | key.source);
    return static_cast<std::size_t>(hash);
  }
};

// Holds pointers to entries that live elsewhere; Entry has a member `Entry* next` for it.
template <class Entry>
class MatchTable {
 public:
  void push(const MatchKey& key, Entry* entry) {
    entry->next = nullptr;
    auto [at, isNew] = queues_.try_emplace(key, Queue{entry, entry});
    if (isNew) return;
    at->second.last->next = entry;
    at->second.last = entry;
  }

  Entry* front(const MatchKey& key) const {
    const auto at = queues_.find(key);
    return at == queues_.end() ? nullptr : at->second.first;
  }

  void remove(const MatchKey& key, Entry* entry) {
    const auto at = queues_.find(key);
    if (at == queues_.end()) return;
    Queue& queue = at->second;
    Entry* before = nullptr;
    for (Entry* e = queue.first; e != nullptr; before = e, e = e->next) {
      if (e != entry) continue;
      (before == nullptr ? queue.first : before->next) = e->next;
      if (queue.last == e) queue.last = before;
      break;
    }
    if (queue.first == nullptr) queues_.erase(at);
  }

  bool empty() const { return queues_.empty(); }

 private:
  struct Queue {
    Entry* first;
    Entry* last;
  };
  std::unordered_map<MatchKey, Queue, MatchKeyHash> queues_;
};

}  // namespace byway
