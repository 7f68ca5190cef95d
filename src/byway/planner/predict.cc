// SPDX-License-Identifier: BSD-3-Clause
// The model, in full:
//   - A message is matched once its send and its receive are both posted. Messages of one directed
//     link are served in the order of matching (ties: the order of the schedule); one starts at
//     max(link free, send posted + alpha, receive posted) and ends bytes / rate later. Its send and
//     its receive are over then. This is the rule of paced links (transport/paced/paced_wire.h).
//   - Blocks are cut as bind() cuts them, in units of 64 bytes; a message of no bytes takes no
//   time.
//   - Posting a send or a receive takes `message` seconds of its rank's own time, one after another
//     in the order in which they become ready. A receive is held until the receive before it from
//     the same rank, in the order of the schedule, has been posted (executor/operation.cc,
//     issue()).
//   - A local step takes its inputs' bytes / `reduce`; the steps of a rank run one after another in
//     the order in which they become ready. They do not hold up posting: both are asynchronous.
#include "byway/planner/predict.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "byway/base/error.h"
#include "byway/schedule/bind.h"
#include "byway/schedule/loads.h"

namespace byway {
namespace {

constexpr Seconds kNotPosted = -1;
constexpr std::uint32_t kNoTransfer = ~std::uint32_t{0};

// Held: could be posted, but one before it from the same rank was not.
enum class Recv : std::uint8_t { Waiting, Held, Posted };

// Bytes of every ref of a schedule, and what lower bounds need of them.
class Bytes {
 public:
  Bytes(const Schedule& schedule, std::span<const double> blockBytes, double partialWeight)
      : schedule_(schedule), partialWeight_(partialWeight) {
    std::vector<CellRange> cut;
    for (std::size_t b = 0; b < schedule.shape.blocks.size(); ++b) {
      const Block& block = schedule.shape.blocks[b];
      first_.push_back(cells_.size());
      cut.assign(block.shares.size(), {});
      cutBlock(block.shares, block.directShares, static_cast<std::uint64_t>(blockBytes[b]), 1, cut);
      for (const CellRange& cell : cut) cells_.push_back(static_cast<double>(cell.count));
    }
  }

  double of(const Ref& ref) const {
    double result = 0;
    for (const auto& piece : schedule_.piecesOf(ref)) {
      result += cells_[first_[piece.block] + piece.share];
    }
    return ref.width == Width::Accumulator ? result * partialWeight_ : result;
  }

  double of(const Step& step) const {
    double result = 0;
    for (const auto& input : schedule_.inputsOf(step)) result += of(input);
    return result;
  }

 private:
  const Schedule& schedule_;
  double partialWeight_;
  std::vector<std::size_t> first_;
  std::vector<double> cells_;
};

class Simulation {
 public:
  Simulation(const Schedule& schedule, const DependenceGraph& graph, const Topology& topology,
             const Bytes& bytes)
      : schedule_(schedule),
        graph_(graph),
        topology_(topology),
        bytes_(bytes),
        transfers_(static_cast<std::uint32_t>(schedule.transfers.size())),
        operations_(2 * transfers_ + static_cast<std::uint32_t>(schedule.steps.size())),
        ready_(operations_, 0.0),
        previousRecv_(transfers_, kNoTransfer),
        nextRecv_(transfers_, kNoTransfer),
        recvs_(transfers_, Recv::Waiting),
        postedAt_(transfers_, kNotPosted),
        sent_(transfers_, kNotPosted),
        awaited_(transfers_, kNotPosted),
        linkFree_(topology.links.size(), 0.0),
        posterFree_(static_cast<std::size_t>(topology.ranks), 0.0),
        stepperFree_(static_cast<std::size_t>(topology.ranks), 0.0) {
    indexGraph();
    chainReceives();
    events_.reserve(operations_);
  }

  Seconds run() {
    std::vector<OpId> first;  // collected before any of them ends and frees others
    for (OpId op = 0; op < operations_; ++op) {
      if (waitsFor_[op] == 0) first.push_back(op);
    }
    for (const OpId op : first) becameReady(op);
    while (!events_.empty()) {
      const auto event = pop();
      if (event.key < operations_) {
        posted(event.key, event.time);
      } else {
        serve(event.key - operations_);
      }
    }
    BYWAY_ASSERT(over_ == operations_);  // else the graph has a cycle
    return end_;
  }

 private:
  // Keys below operations_ are operations that became ready, others matched transfers: at equal
  // times everything that is ready is posted before a link takes its next message.
  struct Event {
    Seconds time;
    std::uint32_t key;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : key > other.key;
    }
  };

  // Successors of each operation, one after another.
  void indexGraph() {
    waitsFor_.assign(operations_, 0);
    firstNext_.assign(operations_ + 1, 0);
    next_.resize(graph_.edges.size());
    for (const auto& edge : graph_.edges) {
      ++waitsFor_[edge.after];
      ++firstNext_[edge.before + 1];
    }
    for (OpId op = 0; op < operations_; ++op) firstNext_[op + 1] += firstNext_[op];
    auto place = firstNext_;
    for (const auto& edge : graph_.edges) next_[place[edge.before]++] = edge.after;
  }

  // Receives of one link, in the order of the schedule.
  void chainReceives() {
    std::vector<std::uint32_t> last(topology_.links.size(), kNoTransfer);
    for (std::uint32_t t = 0; t < transfers_; ++t) {
      auto& before = last[linkOf(t)];
      previousRecv_[t] = before;
      if (before != kNoTransfer) nextRecv_[before] = t;
      before = t;
    }
  }

  std::size_t linkOf(std::uint32_t t) const {
    const auto& transfer = schedule_.transfers[t];
    return static_cast<std::size_t>(transfer.from.rank) *
               static_cast<std::size_t>(topology_.ranks) +
           static_cast<std::size_t>(transfer.to.rank);
  }

  void push(Seconds time, std::uint32_t key) {
    events_.push_back({time, key});
    std::push_heap(events_.begin(), events_.end(), std::greater<>());
  }

  Event pop() {
    std::pop_heap(events_.begin(), events_.end(), std::greater<>());
    const auto result = events_.back();
    events_.pop_back();
    return result;
  }

  // Posting that takes no time needs no event of its own.
  void becameReady(OpId op) {
    if (op < 2 * transfers_ && topology_.message == 0) {
      post(op);
    } else {
      push(ready_[op], op);
    }
  }

  void posted(OpId op, Seconds now) {
    if (op < 2 * transfers_) return post(op);
    const auto& step = schedule_.steps[op - 2 * transfers_];
    auto& free = stepperFree_[static_cast<std::size_t>(step.to.rank)];
    free = std::max(free, now);
    if (topology_.reduce > 0) free += bytes_.of(step) / topology_.reduce;
    finished(op, free);
  }

  Seconds postingEnds(int rank, Seconds now) {
    if (topology_.message == 0) return now;
    auto& free = posterFree_[static_cast<std::size_t>(rank)];
    return free = std::max(free, now) + topology_.message;
  }

  // A send or a receive is ready. Receives that waited for this one follow; since what happens
  // later may be found out earlier, their times are compared as well.
  void post(OpId op) {
    auto t = op / 2;
    if (op % 2 == 0) {
      return setPosted(op, postingEnds(schedule_.transfers[t].from.rank, ready_[op]));
    }
    for (recvs_[t] = Recv::Held; t != kNoTransfer && recvs_[t] == Recv::Held; t = nextRecv_[t]) {
      const auto before = previousRecv_[t];
      if (before != kNoTransfer && recvs_[before] != Recv::Posted) return;
      const Seconds earliest = before == kNoTransfer ? 0 : postedAt_[before];
      recvs_[t] = Recv::Posted;
      postedAt_[t] =
          postingEnds(schedule_.transfers[t].to.rank, std::max(ready_[recvOp(t)], earliest));
      setPosted(recvOp(t), postedAt_[t]);
    }
  }

  void setPosted(OpId op, Seconds when) {
    const auto t = op / 2;
    if (bytes_.of(schedule_.transfers[t].from) == 0) return finished(op, when);
    (op % 2 == 0 ? sent_ : awaited_)[t] = when;
    if (sent_[t] != kNotPosted && awaited_[t] != kNotPosted) {
      push(std::max(sent_[t], awaited_[t]), operations_ + t);
    }
  }

  // A matched message gets its turn on the link.
  void serve(std::uint32_t t) {
    const auto link = linkOf(t);
    const auto start = std::max({linkFree_[link], sent_[t] + topology_.alpha, awaited_[t]});
    const auto end = start + bytes_.of(schedule_.transfers[t].from) / topology_.links[link];
    linkFree_[link] = end;
    finished(sendOp(t), end);
    finished(recvOp(t), end);
  }

  void finished(OpId op, Seconds when) {
    ++over_;
    end_ = std::max(end_, when);
    for (auto i = firstNext_[op]; i < firstNext_[op + 1]; ++i) {
      const auto next = next_[i];
      ready_[next] = std::max(ready_[next], when);
      if (--waitsFor_[next] == 0) becameReady(next);
    }
  }

  const Schedule& schedule_;
  const DependenceGraph& graph_;
  const Topology& topology_;
  const Bytes& bytes_;
  const std::uint32_t transfers_;
  const std::uint32_t operations_;
  std::vector<std::uint32_t> waitsFor_, firstNext_, next_;
  std::vector<Seconds> ready_;  // per operation: when what it waited for was over
  std::vector<std::uint32_t> previousRecv_, nextRecv_;  // per transfer: of the same link
  std::vector<Recv> recvs_;
  std::vector<Seconds> postedAt_;
  std::vector<Seconds> sent_, awaited_;  // per transfer: when its ends were posted
  std::vector<Seconds> linkFree_;
  std::vector<Seconds> posterFree_, stepperFree_;  // per rank
  std::vector<Event> events_;                      // a heap
  std::uint32_t over_ = 0;
  Seconds end_ = 0;
};

bool linksExist(const Schedule& schedule, const Topology& topology) {
  return std::all_of(schedule.transfers.begin(), schedule.transfers.end(),
                     [&](const auto& t) { return topology.link(t.from.rank, t.to.rank) > 0; });
}

// What the ports and the bus need to carry their loads at all.
Seconds sharedBound(const Schedule& schedule, const Topology& topology, const Bytes& bytes) {
  const auto n = static_cast<std::size_t>(topology.ranks);
  std::vector<double> out(n, 0.0), in(n, 0.0);
  double all = 0;
  for (const auto& transfer : schedule.transfers) {
    const double load = bytes.of(transfer.from);
    out[static_cast<std::size_t>(transfer.from.rank)] += load;
    in[static_cast<std::size_t>(transfer.to.rank)] += load;
    all += load;
  }
  Seconds bound = topology.bus > 0 ? all / topology.bus : 0;
  for (std::size_t r = 0; r < n; ++r) {
    if (out[r] > 0) bound = std::max(bound, out[r] / topology.egress[r]);
    if (in[r] > 0) bound = std::max(bound, in[r] / topology.ingress[r]);
  }
  return bound;
}

// What the busiest link, and the busiest rank with its sums and its messages, need at least.
Seconds busiest(const Schedule& schedule, const Topology& topology, const Bytes& bytes) {
  const auto n = static_cast<std::size_t>(topology.ranks);
  std::vector<Seconds> links(n * n, 0.0), posting(n, 0.0), summing(n, 0.0);
  for (const auto& transfer : schedule.transfers) {
    const auto from = static_cast<std::size_t>(transfer.from.rank);
    const auto to = static_cast<std::size_t>(transfer.to.rank);
    links[from * n + to] += bytes.of(transfer.from) / topology.links[from * n + to];
    posting[from] += topology.message;
    posting[to] += topology.message;
  }
  for (const auto& step : schedule.steps) {
    if (topology.reduce > 0) {
      summing[static_cast<std::size_t>(step.to.rank)] += bytes.of(step) / topology.reduce;
    }
  }
  const auto most = [](const std::vector<Seconds>& all) {
    return *std::max_element(all.begin(), all.end());
  };
  return std::max(
      {most(links), most(posting), most(summing), sharedBound(schedule, topology, bytes)});
}

}  // namespace

Seconds predict(const Schedule& schedule, const DependenceGraph& graph, const Topology& topology,
                std::span<const double> blockBytes, double partialWeight) {
  BYWAY_ASSERT(schedule.shape.ranks == topology.ranks);
  BYWAY_ASSERT(blockBytes.size() == schedule.shape.blocks.size());
  if (!linksExist(schedule, topology)) return kNever;
  const Bytes bytes(schedule, blockBytes, partialWeight);
  return std::max(Simulation(schedule, graph, topology, bytes).run(),
                  sharedBound(schedule, topology, bytes));
}

Seconds predictWithin(std::uint64_t quota, const Schedule& schedule, const DependenceGraph& graph,
                      const Topology& topology, std::span<const double> blockBytes,
                      double partialWeight) {
  const Rounds rounds =
      quota == 0 ? Rounds{} : roundsFor(schedule, blockBytes, partialWeight, quota);
  if (rounds.count == 0 || !linksExist(schedule, topology)) return kNever;
  std::vector<double> part(blockBytes.begin(), blockBytes.end());
  for (double& bytes : part) bytes /= rounds.count;
  const Seconds one = predict(schedule, graph, topology, part, partialWeight);
  if (rounds.count == 1) return one;
  // Of two rounds under way each link serves one and then the other: at worst both go in step, at
  // best one fills all waits of the other.
  for (double& bytes : part) bytes *= kRoundsInFlight;
  const Seconds inStep = predict(schedule, graph, topology, part, partialWeight) / kRoundsInFlight;
  const Seconds further =
      std::max((inStep + one / kRoundsInFlight) / 2,
               busiest(schedule, topology, Bytes(schedule, part, partialWeight)) / kRoundsInFlight);
  return one + (rounds.count - 1) * further;
}

}  // namespace byway
