// SPDX-License-Identifier: BSD-3-Clause
// Send and receive: local programs of single transfers, matched by source, tag and order.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "byway/base/types.h"
#include "byway/executor/operation.h"

namespace byway {

inline constexpr int kAnySource = -1;

struct PointToPoint {
  bool sends = false;
  int peer = 0;           // rank in the communicator; kAnySource for a receive from anybody
  std::uint32_t tag = 0;  // below 2^31
  DType dtype = DType::UInt8;
  Segments buffer;  // its bytes are the message
};

struct PointToPointRequest {
  std::vector<PointToPoint> transfers;
  Seconds timeout = 300;
  std::shared_ptr<void> keepAlive;
};

// The keys of messages between two ranks; collectives never use them.
bool isPointToPoint(const MatchKey& key);

class PointToPointOperation final : public Operation {
 public:
  PointToPointOperation(Channel& channel, PointToPointRequest request, Seconds deadline);

  const Segments& reads() const override { return nothing_; }
  const Segments& writes() const override { return nothing_; }
  bool tryStart() override;
  bool advance() override { return false; }
  bool ended() const override { return started_ && remaining_ == 0; }
  bool awaitsMessageOf(int rank) const override;
  std::set<int> waitsFor() const override;
  bool receives() const override;
  bool awaitsAnybody() const override { return awaitsMessageOf(kAnySource); }
  std::string outstanding() const override;
  std::string describe() const override;
  void describe(CallRecord& record) const override;
  int sourceOf(std::size_t index) const override {
    return index < parts_.size() ? parts_[index].source : -1;
  }
  void release() override;

  // A message was found for receive `index`: it is fetched, or its difference reported.
  void receive(std::uint32_t index, const MatchKey& key, const Stamp& stamp);
  const PointToPoint& part(std::uint32_t index) const { return parts_[index].transfer; }

 private:
  struct Part {
    PointToPoint transfer;
    int source = -1;
    bool over = false;
    std::uint32_t number = 0;  // of the message among those of its tag
    Seconds issued = 0;        // where the channel traces
  };
  static void transferDone(void* self, std::uint32_t tag, Outcome outcome);
  void issued(Part& part, const MatchKey& key);
  void trace(const Part& part) const;
  void send(std::uint32_t index);
  std::span<const Buffer> buffersOf(std::uint32_t index) const;

  std::vector<Part> parts_;
  std::size_t remaining_;
  std::byte empty_{};  // stands for a message of no bytes
  Buffer emptyBuffer_{&empty_, 1, MemoryKind::Host, 0};
  Segments nothing_;
};

// Matches messages with receives as MPI does: messages from one source with one tag in the order in
// which they were sent, receives in the order in which they were posted.
class MessageOrder {
 public:
  explicit MessageOrder(Channel& channel) : channel_(channel) {}

  // The key of the next message to `to` with this tag.
  MatchKey nextSend(int to, std::uint32_t tag);
  void arrived(const MatchKey& key, const Stamp& stamp);
  void post(PointToPointOperation& operation, std::uint32_t index);
  // Messages sent to and taken from a rank, whatever their tags.
  std::uint64_t sentTo(int rank) const;
  std::uint64_t acceptedFrom(int rank) const;
  void withdraw(const PointToPointOperation& operation);

 private:
  using Stream = std::pair<int, std::uint32_t>;  // rank, tag
  struct Posted {
    PointToPointOperation* operation;
    std::uint32_t index;
  };
  struct Waiting {
    MatchKey key;
    Stamp stamp;
  };
  void accept(const Waiting& message);

  Channel& channel_;
  std::map<Stream, std::uint32_t> sent_, accepted_;
  std::map<Stream, std::map<std::uint32_t, Waiting>> ahead_;  // came before their predecessors
  std::list<Posted> posted_;
  std::list<Waiting> waiting_;
};

}  // namespace byway
