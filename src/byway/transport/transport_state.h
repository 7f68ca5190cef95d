// SPDX-License-Identifier: BSD-3-Clause
// What a Transport knows; private to transport.cc and transport_end.cc.
#pragma once

#include <list>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "byway/transport/match_table.h"
#include "byway/transport/transport.h"

namespace byway {

struct Transport::State {
  explicit State(Wire& w, TransportOptions o) : wire(w), usesTimes(w.usesTimes()), options(o) {}

  struct Recv {
    MatchKey key;
    PeerId peer = -1;
    std::vector<Buffer> pieces;
    std::uint64_t bytes = 0;
    Completion done;
    Seconds postedAt = 0;
    // From the match on.
    bool moving = false;
    Arrival arrival;
    std::size_t fetches = 0;
    Outcome outcome = Outcome::Ok;

    State* state = nullptr;
    Recv* next = nullptr;
    std::list<Recv>::iterator self;
  };
  struct Send {
    std::uint64_t communicator = 0;
    SendId id = 0;
    Completion done;
    State* state = nullptr;
    std::list<Send>::iterator self;
  };
  // A message without a receive.
  struct Early {
    Arrival arrival;
    Early* next = nullptr;
    std::list<Early>::iterator self;
  };
  struct Transfers {
    std::list<Recv> recvs;
    std::list<Send> sends;
  };
  using Call = std::pair<std::uint64_t, std::uint64_t>;  // communicator, sequence
  struct Peer {
    std::int64_t eagerBytes = 0, eagerMessages = 0;  // of ours that may still go unmatched
    std::uint32_t owedBytes = 0, owedMessages = 0;   // of theirs, matched and not yet told
    bool isLost = false;
  };

  // Matching.
  void match(Recv& recv, const Arrival& arrival);
  void file(const Arrival& arrival);
  Early* findEarly(const Recv& recv);
  void dropEarly(Early& early);
  void complete(Recv& recv, Outcome outcome);
  static void fetched(void* self, std::uint32_t tag, Outcome outcome);
  static void sent(void* self, std::uint32_t tag, Outcome outcome);

  // Ending.
  void cancel(std::uint64_t communicator);
  void forgetIfEnded(std::uint64_t communicator);
  void finish(const Arrival& arrival, Outcome outcome);

  // Credit.
  Peer& peer(PeerId id);
  bool takeCredit(PeerId id, std::uint64_t bytes);
  void addOwed(PeerId id, WireHeader& header);
  void returnCredit(PeerId id, std::uint64_t bytes);
  void creditArrived(PeerId id, const WireHeader& header);

  Wire& wire;
  const bool usesTimes;
  const TransportOptions options;
  ArrivalSink* sink = nullptr;
  bool closed = false;

  MatchTable<Recv> posted;
  MatchTable<Early> early;
  std::unordered_map<std::uint64_t, Transfers> communicators;
  std::map<Call, std::list<Early>> earlyByCall;
  // Never shrinks: ids are not reused and a message may be late by any time. It costs a few words
  // for each communicator that a process ever ended.
  std::unordered_set<std::uint64_t> cancelled;
  std::vector<Peer> peers;
};

}  // namespace byway
