// SPDX-License-Identifier: BSD-3-Clause
// The public C++ interface: collectives among the ranks of a communicator, or among groups of them
// with the other ranks helping.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "byway/base/buffer.h"
#include "byway/base/error.h"
#include "byway/base/types.h"
#include "byway/comm/endpoint.h"
#include "byway/comm/store.h"
#include "byway/comm/work.h"

namespace byway {

struct CommunicatorOptions {
  // "" reads BYWAY_TOPOLOGY, and without it is "host". Presets and files: docs/topology.md.
  std::string topology;
  // Which ranks of the topology, and of the pace's, are this communicator's; empty: all, in their
  // order. A topology without some of these describes the communicator by itself.
  std::vector<int> topologyRanks;
  std::uint64_t stageQuota = std::uint64_t{64} << 20;  // bytes of stage memory on each rank
  Seconds timeout = 300;  // of creation, and of every call that states none
  // A call that is under way for so long is logged once, with the ranks it waits for. Nothing:
  // BYWAY_LATE_AFTER, and without it 30; kNever: never.
  std::optional<Seconds> lateAfter;
  // Tries this route only: "direct", or a name that `byway plan` prints. "" chooses.
  std::string route;
  // All-to-all by a rank's own counts goes direct. With this the ranks tell each other their counts
  // first, as part of the call, so that relay can be planned.
  bool exchangeCounts = false;
  // Ranks of one host see each other's data in memory that they share (docs/host.md), where all of
  // them can. Nothing: BYWAY_MAPPED, and without it true.
  std::optional<bool> mapped;
  // Phantom: calls take their time and move nothing (tables on a virtual clock).
  MemoryKind memory = MemoryKind::Host;
};

// Memory as an ordered list of parts; the collective sees their concatenation. Parts hold whole
// elements.
class Region {
 public:
  Region() = default;
  Region(void* address, std::size_t bytes) : only_{address, bytes}, isOne_(true) {}
  Region(std::vector<Buffer> parts) : parts_(std::move(parts)) {}  // NOLINT: a list is a region
  std::span<const Buffer> parts() const {
    return isOne_ ? std::span(&only_, 1) : std::span<const Buffer>(parts_);
  }
  std::size_t bytes() const;

 private:
  Buffer only_;
  bool isOne_ = false;  // only_, and no list
  std::vector<Buffer> parts_;
};
// Inputs are not written; they are Regions so that one type serves both sides.
Region readOnly(const void* address, std::size_t bytes);

struct Reduction {
  Reduction(ReduceOp o = ReduceOp::Sum) : op(o) {}  // NOLINT: an op is a reduction
  Reduction(ReduceOp o, std::complex<double> f) : op(o), factor(f) {}
  ReduceOp op;
  std::complex<double> factor{1.0, 0.0};  // of PremulSum
};

struct CallOptions {
  std::optional<Seconds> timeout;   // default: the communicator's
  std::shared_ptr<void> keepAlive;  // held until the call is done
  // For a fused call of one group, while calls of other groups of its size are under way on
  // communicators of their own: how many there are, this one counted. 0: not stated; the call takes
  // the links as its own, as with 1 (docs/planner.md). All ranks must state the same.
  int liveGroups = 0;
  // Checks the arguments and throws for what is wrong with them, as always, but makes no call:
  // takes no number, tells no rank, and gives a Work that is done.
  bool checkOnly = false;
};

// One of the groups of a fused call. `ranks` are ranks of the communicator; their order is the
// group's. `count` in elements: the whole for allreduce, broadcast and reduce; a rank's block for
// all-gather, reduce-scatter, scatter and gather; a pair's segment for all-to-all. `counts`, where
// not empty, gives each block its own (in the order of docs/schedules.md, section blocks).
struct CallGroup {
  std::vector<int> ranks;
  int root = 0;  // position in `ranks`
  std::uint64_t count = 0;
  std::vector<std::uint64_t> counts;
};

struct FusedArgs {
  Region input, output;  // empty on ranks that only help
};

// A receive from whichever rank sends first; Work::source() tells which it was.
inline constexpr int kFromAnyRank = -1;

struct SendOrRecv {
  enum class Kind : std::uint8_t { Send, Recv };
  Kind kind = Kind::Send;
  int peer = 0;   // rank; may be the caller's own, or kFromAnyRank for a receive
  Region region;  // the whole of it is the message; no bytes are a message too
  DType dtype = DType::UInt8;
  std::uint32_t tag = 0;  // below 2^31
};

// The counts of a gather or scatter, one per rank of the communicator, by who knows them. All ranks
// of a call use the same form.
class RankCounts {
 public:
  enum class Known : std::uint8_t { Everywhere, AtRoot, Own };
  // Every rank gives the whole list.
  RankCounts(std::vector<std::uint64_t> all)  // NOLINT: a list of counts is counts
      : counts_(std::move(all)) {}
  RankCounts(std::initializer_list<std::uint64_t> all) : counts_(all) {}
  // The root gives the whole list, and every other rank no more than its own count.
  static RankCounts atRoot(std::vector<std::uint64_t> all) {
    return RankCounts(std::move(all), Known::AtRoot);
  }
  static RankCounts own(std::uint64_t count) {
    return RankCounts(std::vector<std::uint64_t>(1, count), Known::Own);
  }

  Known known() const { return known_; }
  const std::vector<std::uint64_t>& counts() const { return counts_; }

 private:
  RankCounts(std::vector<std::uint64_t> counts, Known known)
      : counts_(std::move(counts)), known_(known) {}
  std::vector<std::uint64_t> counts_;
  Known known_ = Known::Everywhere;
};

struct CommunicatorState;

// All calls are asynchronous and must be made by every rank of the communicator in the same order.
// Buffers must stay until the Work is done. In place means the same memory (allreduce, broadcast,
// reduce) or the caller's own block within the larger buffer (all-gather, reduce-scatter, gather,
// scatter); all-to-all is out of place only; other overlap is an error.
// Errors: InvalidArgument and Unsupported at the call, before anything is sent; Mismatch, Timeout,
// PeerLost, Aborted from the Work; after those the communicator is broken and every call throws
// Broken.
class Communicator {
 public:
  // Of the store's ranks in `ranks` (all different), among which this process is `self`. All of
  // them call it with the same name, list and options. Throws Timeout when one does not come and
  // InvalidArgument that names the setting and the ranks when options differ.
  static std::unique_ptr<Communicator> create(std::shared_ptr<Endpoint> endpoint, Store& store,
                                              const std::string& name, std::vector<int> ranks,
                                              int self, CommunicatorOptions options = {});
  // Of all processes of the job, as the launcher describes it (LaunchInfo).
  static std::unique_ptr<Communicator> world(CommunicatorOptions options = {});

  ~Communicator();  // destroy(10)
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const;
  int size() const;
  const CommunicatorOptions& options() const;

  // Counts in elements. `input` and `output` have the bytes that count and dtype ask for; a rank
  // without one passes an empty Region.
  Work allReduce(const Region& input, const Region& output, std::uint64_t count, DType dtype,
                 const Reduction& reduction = {}, const CallOptions& options = {});
  Work broadcast(const Region& input, const Region& output, std::uint64_t count, DType dtype,
                 int root, const CallOptions& options = {});
  Work reduce(const Region& input, const Region& output, std::uint64_t count, DType dtype, int root,
              const Reduction& reduction = {}, const CallOptions& options = {});
  // count: a rank's block. With `counts` (one per rank) blocks differ.
  Work allGather(const Region& input, const Region& output, std::uint64_t count, DType dtype,
                 const CallOptions& options = {});
  Work allGather(const Region& input, const Region& output, std::vector<std::uint64_t> counts,
                 DType dtype, const CallOptions& options = {});
  Work reduceScatter(const Region& input, const Region& output, std::uint64_t count, DType dtype,
                     const Reduction& reduction = {}, const CallOptions& options = {});
  Work reduceScatter(const Region& input, const Region& output, std::vector<std::uint64_t> counts,
                     DType dtype, const Reduction& reduction = {}, const CallOptions& options = {});
  Work gather(const Region& input, const Region& output, std::uint64_t count, DType dtype, int root,
              const CallOptions& options = {});
  Work gather(const Region& input, const Region& output, const RankCounts& counts, DType dtype,
              int root, const CallOptions& options = {});
  Work scatter(const Region& input, const Region& output, std::uint64_t count, DType dtype,
               int root, const CallOptions& options = {});
  Work scatter(const Region& input, const Region& output, const RankCounts& counts, DType dtype,
               int root, const CallOptions& options = {});
  // count: the segment of each pair.
  Work allToAll(const Region& input, const Region& output, std::uint64_t count, DType dtype,
                const CallOptions& options = {});
  // A count for each pair, of which a rank knows those that concern it: what it sends to each rank,
  // and what it receives from each. Counts that do not agree are a Mismatch that names both ranks
  // and both counts. Goes direct (every relay needs to know more), unless exchangeCounts is on.
  Work allToAll(const Region& input, const Region& output,
                const std::vector<std::uint64_t>& sendCounts,
                const std::vector<std::uint64_t>& recvCounts, DType dtype,
                const CallOptions& options = {});
  // The same where every rank knows the counts of all pairs, by source, then destination.
  Work allToAll(const Region& input, const Region& output, std::vector<std::uint64_t> pairCounts,
                DType dtype, const CallOptions& options = {});
  // For callers who keep counts: every rank gives a row of the same length and gets the rows of all
  // ranks, one after another. Waits.
  std::vector<std::uint64_t> exchangeCounts(const std::vector<std::uint64_t>& row,
                                            const CallOptions& options = {});
  Work barrier(const CallOptions& options = {});

  // The same collective in several disjoint groups at once; ranks in none of them help. Every rank
  // of the communicator calls it with the same groups.
  Work fused(Collective collective, std::span<const CallGroup> groups, const FusedArgs& mine,
             DType dtype, const Reduction& reduction = {}, const CallOptions& options = {});

  // Point to point: only the two ranks take part. Messages from one rank with one tag arrive in the
  // order in which they were sent; receives are served in the order in which they were posted. Both
  // sides must state the same dtype and bytes; a difference is a Mismatch that names both and
  // breaks the communicator. A send is done when its buffer may be reused.
  // Unlike collectives, these calls do not wait for earlier ones on the same memory (that could
  // wait for the peer): wait for those first.
  Work send(const Region& region, DType dtype, int peer, std::uint32_t tag = 0,
            const CallOptions& options = {});
  Work recv(const Region& region, DType dtype, int peer, std::uint32_t tag = 0,
            const CallOptions& options = {});
  // All begin together, so their order among each other does not matter on either side.
  Work batch(std::span<const SendOrRecv> parts, const CallOptions& options = {});

  // Lists of tensors in one call: element i of every rank's list has the same size. The result is
  // as if each had been called alone.
  Work allReduceCoalesced(std::span<const Region> inputs, std::span<const Region> outputs,
                          DType dtype, const Reduction& reduction = {},
                          const CallOptions& options = {});
  Work allGatherCoalesced(std::span<const Region> inputs, std::span<const Region> outputs,
                          DType dtype, const CallOptions& options = {});
  Work reduceScatterCoalesced(std::span<const Region> inputs, std::span<const Region> outputs,
                              DType dtype, const Reduction& reduction = {},
                              const CallOptions& options = {});

  // What the plan for a call would be (docs/planner.md), without making the call: true when helpers
  // carry part of it.
  struct PlanInfo {
    std::string route;
    std::uint64_t hash = 0, directHash = 0;
    bool relayed = false;
    Seconds predicted = 0, directPredicted = 0;
  };
  PlanInfo planFor(Collective collective, std::span<const CallGroup> groups, DType dtype,
                   const Reduction& reduction = {}) const;
  // Makes the plan for calls of this shape and size class ahead of them, however long it takes:
  // irregular groups, counts and links get their routes from an LP, which a call itself solves only
  // where it is worth it (docs/planner.md). All ranks must call it alike.
  PlanInfo prepare(Collective collective, std::span<const CallGroup> groups, DType dtype,
                   const Reduction& reduction = {}, int liveGroups = 0);

  // For callers that check arguments themselves: this rank's next collective is wrong, for the
  // reason that `error` states. Takes the call's number and tells the other ranks.
  void refuse(const Error& error);

  // Bytes of stage memory in use and the most that ever were.
  std::uint64_t stageInUse() const;
  std::uint64_t stagePeak() const;

  // The flight recorder (docs/recorder.md): this rank's last calls, their state and times, as JSON;
  // and the same into a file. At any time before destroy(), also once the communicator is broken.
  std::string recordedCalls() const;
  void writeRecordedCalls(const std::string& path) const;

  // Fails everything under way with Aborted, here and on the other ranks. From any thread.
  void abort(const std::string& why);
  // Waits up to `bound` seconds for calls under way, then ends them. Idempotent.
  void destroy(Seconds bound);

 private:
  explicit Communicator(std::shared_ptr<CommunicatorState> state);
  std::shared_ptr<CommunicatorState> state_;
};

}  // namespace byway
