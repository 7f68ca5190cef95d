// SPDX-License-Identifier: BSD-3-Clause
// The UCX wire. Its functions stand in ucx_wire.cc (progress, waiting), peers.cc, sending.cc,
// receiving.cc and closing.cc.
//
// UCX's callbacks only file what happened; everything else runs from progress(), first what came
// in, then completions. A withdrawal that lies in the queue is thus seen before the completion of
// a fetch that may have read memory which was given back.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "byway/transport/completion_queue.h"
#include "byway/transport/ucx/library.h"
#include "byway/transport/ucx/liveness.h"
#include "byway/transport/ucx/protocol.h"
#include "byway/transport/ucx/staging.h"
#include "byway/transport/ucx/waiter.h"

namespace byway::ucx {

class UcxWire final : public Wire {
 public:
  UcxWire();
  ~UcxWire() override;

  Address address() const override { return packedAddress_; }
  PeerId connect(std::span<const std::byte> address) override;
  void setSink(WireSink* sink) override { sink_ = sink; }

  SendId send(PeerId peer, const WireHeader& header, std::span<const ConstBuffer> pieces,
              bool eager, Completion done) override;
  void withdraw(SendId id) override;
  void fetch(PeerId from, const Arrival& arrival, std::uint64_t offset, Buffer to,
             Completion done) override;
  void finish(PeerId from, const Arrival& arrival, Outcome outcome) override;

  bool progress() override;
  Seconds nextTimer() const override;
  const Clock& clock() const override { return SteadyClock::instance(); }
  std::size_t eagerLimit() const override { return std::size_t{64} << 10; }
  bool arm() override;
  void sleep(Seconds until) override { waiter_->sleep(until); }
  void wake() override { waiter_->wake(); }
  void close(Seconds bound) override;

 private:
  struct Peer {
    ucp_ep_h endpoint = nullptr;
    std::uint64_t process = 0;
    bool hasErrorMode = false;  // another host, or one whose processes are not visible here
    bool readsMemory = false;   // its fetches need no help of this process (CMA)
    bool isLost = false;
    bool hasEnded = false;  // its process, on this host
  };
  // A message as UCX delivered it. `data` is UCX's and has to be given back, unless null.
  struct Inbound {
    AmMessage message;
    void* data = nullptr;
    std::size_t bytes = 0;
  };
  // An active message that was sent, until UCX and (announced ones) the receiver are done with it.
  struct Outgoing {
    UcxWire* wire = nullptr;
    PeerId peer = -1;
    SendId id = 0;
    Completion done;
    bool isSending = true;  // UCX still reads `payload`
    bool isOrphan = false;  // so to a process that has ended: UCX may never say that it is done
    bool awaitsFinish = false;
    bool isWithdrawn = false;
    std::vector<std::byte> payload;
    StagingPool::Block staging;  // more pieces than an announcement holds, gathered
    std::vector<ucp_mem_h> regions;
    std::list<Outgoing>::iterator self;
  };
  // A data message that has arrived and is not finished.
  struct Incoming {
    WireHeader header;
    PeerId from = -1;
    bool isEager = false;
    std::uint64_t id = 0;
    void* data = nullptr;  // eager; null for a phantom
    std::vector<RemotePiece> pieces;
    std::vector<ucp_rkey_h> keys;  // of `pieces`, from the first fetch on; null for phantoms
  };
  struct Fetch {
    UcxWire* wire = nullptr;
    PeerId peer = -1;
    Completion done;
    int gets = 0;
    bool isOrphan = false;  // from a process that has ended; `done` was called
    Outcome outcome = Outcome::Ok;
    std::list<Fetch>::iterator self;
  };

  bool turn();
  bool receive();
  void lookForEnded();

  // peers.cc
  Peer& peerOf(PeerId id) { return peers_.at(static_cast<std::size_t>(id)); }
  PeerId addPeer(const ProcessAddress& address);
  void sayHello(PeerId id);
  void helloArrived(const Inbound& inbound);
  void losePeer(PeerId id);
  void orphan(PeerId id);

  // sending.cc
  Outgoing& startMessage(PeerId peer);
  bool post(Outgoing& out, const void* header, std::size_t headerBytes);
  void sent(Outgoing& out, ucs_status_t status);
  static void sentCallback(void* request, ucs_status_t status, void* out) noexcept;
  bool announce(Outgoing& out, std::span<const ConstBuffer> pieces);
  bool map(Outgoing& out, const ConstBuffer& piece);
  void sendNote(PeerId peer, AmType type, std::uint64_t id, Outcome outcome);
  void finished(SendId id, PeerId from, Outcome outcome);
  void completeOutgoing(Outgoing& out, Outcome outcome);
  void forget(Outgoing& out);
  bool expireWithdrawals();

  // receiving.cc
  static ucs_status_t amCallback(void* wire, const void* header, std::size_t headerBytes,
                                 void* data, std::size_t bytes,
                                 const ucp_am_recv_param_t* param) noexcept;
  void dispatch(Inbound inbound);
  void eagerArrived(PeerId from, const Inbound& inbound);
  void announced(PeerId from, const Inbound& inbound);
  void withdrawn(PeerId from, std::uint64_t id);
  void deliver(std::unique_ptr<Incoming> incoming);
  Arrival arrivalOf(Incoming& incoming) const;
  void release(void* data);
  bool unpackKeys(Incoming& incoming);
  void get(Fetch& fetch, const Incoming& incoming, std::size_t piece, std::uint64_t offset,
           Buffer to);
  void got(Fetch& fetch, ucs_status_t status);
  static void gotCallback(void* request, ucs_status_t status, void* fetch) noexcept;
  static std::uint64_t announcementKey(PeerId from, std::uint64_t id);

  // closing.cc
  void settle(Seconds deadline);
  bool isSettled() const;
  void closeEndpoints(Seconds deadline);
  void releaseAll();

  // Closed, or the child of a fork, which shares this memory and these connections and must not
  // touch them.
  bool isOver() const { return isClosed_ || forks() != forksAtStart_; }

  const unsigned forksAtStart_;
  std::unique_ptr<Worker> worker_;
  Liveness liveness_;
  std::unique_ptr<Waiter> waiter_;
  ProcessAddress own_;
  Address packedAddress_;
  bool canReadOthers_;
  WireSink* sink_ = nullptr;

  std::vector<Peer> peers_;
  std::unordered_map<std::uint64_t, PeerId> peerByProcess_;
  std::deque<Inbound> inbox_;
  std::deque<Inbound> strangers_;  // from processes whose Hello is still on its way
  std::vector<PeerId> failed_;     // found in a callback, acted upon in progress()

  StagingPool staging_;
  std::list<Outgoing> outgoing_;
  std::unordered_map<SendId, Outgoing*> announcements_;
  std::deque<std::pair<Seconds, SendId>> withdrawals_;  // by the time that ends the wait
  SendId lastId_ = 0;

  std::unordered_map<void*, std::unique_ptr<Incoming>> unfinished_;
  std::unordered_map<std::uint64_t, Incoming*> announcedHere_;
  std::list<Fetch> fetches_;
  std::size_t orphans_ = 0;  // messages to ended processes that UCX still holds
  unsigned turns_ = 0;       // of progress()
  bool hasSlept_ = false;    // or is about to
  Seconds nextLook_ = 0;     // for ended processes, while nobody sleeps

  CompletionQueue due_;
  bool mustProgress_ = false;  // UCX was given work that no descriptor announces
  bool isClosed_ = false;
};

}  // namespace byway::ucx
