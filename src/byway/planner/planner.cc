// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/planner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "byway/base/error.h"
#include "byway/planner/candidate_ranking.h"
#include "byway/planner/packing.h"
#include "byway/planner/predict.h"
#include "byway/planner/predict_mapped.h"
#include "byway/schedule/loads.h"
#include "byway/schedule/mapped.h"

namespace byway {
namespace {

constexpr std::size_t kBuilt = 3;  // candidates of a kind that are built, the best by estimate
constexpr std::string_view kPacking = "packing";
constexpr int kEstimatesMislead = 16;  // on irregular cells of up to so many ranks all are built

[[noreturn]] void refuse(const std::string& reason) {
  throw Error(ErrorCode::InvalidArgument, "plan: " + reason);
}

void validateGroups(const PlanRequest& request) {
  std::vector<bool> seen(static_cast<std::size_t>(request.ranks));
  for (std::size_t g = 0; g < request.groups.size(); ++g) {
    const auto& group = request.groups[g];
    if (group.ranks.empty()) refuse(fmt::format("group {} has no members", g));
    if (group.root < 0 || group.root >= group.size()) {
      refuse(fmt::format("group {} of {} members has root {}", g, group.size(), group.root));
    }
    for (const int rank : group.ranks) {
      if (rank < 0 || rank >= request.ranks) {
        refuse(fmt::format("group {} names rank {} of {} ranks", g, rank, request.ranks));
      }
      if (seen[static_cast<std::size_t>(rank)]) {
        refuse(fmt::format("rank {} stands in the groups twice", rank));
      }
      seen[static_cast<std::size_t>(rank)] = true;
    }
  }
}

void validate(const PlanRequest& request, const Topology& topology) {
  if (request.ranks < 1 || request.ranks != topology.ranks) {
    refuse(
        fmt::format("{} ranks on topology {} of {}", request.ranks, topology.name, topology.ranks));
  }
  validateGroups(request);
  std::size_t blocks = 0;
  for (const auto& group : request.groups) {
    blocks += static_cast<std::size_t>(blocksPerGroup(request.collective, group.size()));
  }
  if (request.blockBytes.size() != blocks) {
    refuse(fmt::format("{} block sizes for {} blocks", request.blockBytes.size(), blocks));
  }
  if (!std::isfinite(request.partialWeight) || request.partialWeight <= 0) {
    refuse(fmt::format("partial weight {}", request.partialWeight));
  }
}

// Chooses for one request.
class Choice {
 public:
  Choice(const PlanRequest& request, const Topology& topology)
      : request_(request), topology_(topology) {
    cell_.collective = request.collective;
    cell_.ranks = request.ranks;
    cell_.groups = request.groups;
    cell_.blockBytes.assign(request.blockBytes.begin(), request.blockBytes.end());
    cell_.partialWeight = request.partialWeight;
    cell_.topology = &topology;
    cell_.helperShare = helperShare(request.liveGroups);
    if (topology.name == "host") cell_.mappedBytes = request.mappedBytes;
    cell_.coresForAll = request.coresForAll;
    if (cell_.helperShare < 1) shareHelpers();
  }

  bool mayPack() {
    if (cell_.live().empty()) return false;
    measureLinks();
    if (request_.force.starts_with(kPacking) || missesMemberLink()) return true;
    const bool formula =
        cell_.regular() && (cell_.single() || cell_.coversAllRanks()) && !mayRound();
    return paysToPack() && !formula && cell_.ranks <= kPackingRanks && topology_.bus <= 0;
  }

  Plan make() && {
    if (cell_.live().empty()) return local();
    regular_ = cell_.regular();
    listCandidates();
    predictBest(true);
    if (!regular_) predictAllSmall();
    const auto direct = directOrElse();
    plan_.directPredicted = built(direct).predicted;
    const auto chosen = choose(direct);
    plan_.predicted = built(chosen).predicted;
    plan_.chosen = verify(std::move(schedules_[chosen]).value());
    const bool same = chosen == direct || candidates_[chosen].direct;
    if (same) plan_.directPredicted = plan_.predicted;
    plan_.direct = same ? plan_.chosen : verify(std::move(schedules_[direct]).value());
    return std::move(plan_);
  }

 private:
  // A link between two live groups carries what both send through helpers. Which groups are live is
  // not known, so every helper counts as half (docs/planner.md, Parallel calls).
  double helperShare(int liveGroups) const {
    return liveGroups > 1 && cell_.live().size() == 1 ? 0.5 : 1;
  }

  // Times are predicted as if the other half of a helper's links were always taken.
  void shareHelpers() {
    shared_ = topology_;
    const auto& members = cell_.groups[static_cast<std::size_t>(cell_.live()[0])].ranks;
    const auto isMember = [&](int rank) {
      return std::find(members.begin(), members.end(), rank) != members.end();
    };
    for (int from = 0; from < topology_.ranks; ++from) {
      for (int to = 0; to < topology_.ranks; ++to) {
        if (isMember(from) && isMember(to)) continue;
        const auto row = static_cast<std::size_t>(from) * static_cast<std::size_t>(topology_.ranks);
        shared_->links[row + static_cast<std::size_t>(to)] *= cell_.helperShare;
      }
    }
  }

  // No group has two members: every rank copies its own data, or nothing happens.
  Plan local() {
    if (!request_.force.empty() && request_.force != "direct") refuseName();
    auto schedule = emit(makeShape(cell_.collective, cell_.ranks, cell_.groups), {}, {"local"});
    plan_.predicted = plan_.directPredicted = timeOf(schedule);
    plan_.considered.push_back({"local", true, 0, plan_.predicted, plan_.predicted});
    plan_.chosen = plan_.direct = verify(std::move(schedule));
    return std::move(plan_);
  }

  bool paysToPack() const { return !request_.onCallPath || linkTime_ >= kPackingPays; }

  // Whether the quota may cut a schedule into rounds; no schedule keeps more than this.
  bool mayRound() const {
    std::size_t members = 1;
    for (const Group& group : cell_.groups) members = std::max(members, group.ranks.size());
    const double bytes = std::accumulate(cell_.blockBytes.begin(), cell_.blockBytes.end(), 0.0);
    return request_.stageQuota > 0 && bytes * static_cast<double>(members) * cell_.partialWeight >
                                          static_cast<double>(request_.stageQuota);
  }

  double measureLinks() {
    const double largest = *std::max_element(cell_.blockBytes.begin(), cell_.blockBytes.end());
    linkTime_ = largest / memberRate();
    return largest;
  }

  void listCandidates() {
    const double largest = measureLinks();
    for (const auto& construction : constructions()) {
      if (construction.id == kPacking && !paysToPack()) continue;
      add(construction.candidates(cell_), largest > 0);
    }
    if (request_.force.starts_with(kPacking) && !has(kPacking)) {
      add(packedCandidates(cell_, false), true);
    }
    // The formulas of direct schedules know no slow or missing links.
    if (!regular_ && has(kPacking)) addDirectPacking();
  }

  void add(std::vector<Candidate> candidates, bool relay) {
    for (auto& candidate : candidates) {
      if (!candidate.direct && !relay) continue;
      plan_.considered.push_back(
          {candidate.name, candidate.direct, candidate.value, estimate(candidate)});
      candidates_.push_back(std::move(candidate));
    }
    schedules_.resize(candidates_.size());
  }

  bool has(std::string_view prefix) const {
    return std::any_of(candidates_.begin(), candidates_.end(),
                       [&](const auto& candidate) { return candidate.name.starts_with(prefix); });
  }

  // Nothing where pairs have but one link, all ranks are members or members' links do not suffice.
  void addDirectPacking() {
    const auto live = cell_.live();
    const bool pairs = std::all_of(live.begin(), live.end(), [&](int g) {
      return cell_.groups[static_cast<std::size_t>(g)].size() == 2;
    });
    if (pairs || (cell_.single() && cell_.coversAllRanks())) return;
    try {
      add(packedCandidates(cell_, true), true);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::InvalidArgument) throw;
    }
  }

  // The best direct schedule. Where members' links do not suffice, the best that there is.
  std::size_t directOrElse() {
    if (const auto direct = best(true)) return *direct;
    if (!has(kPacking)) {
      const auto first = candidates_.size();
      add(packedCandidates(cell_, false), true);
      for (auto i = first; i < candidates_.size(); ++i) buildAndPredict(i);
    }
    predictBest(false);
    if (const auto direct = best(true)) return *direct;
    if (const auto relay = best(false)) return *relay;
    refuseUnreachable();
  }

  // The slowest link between members; the estimate's unit.
  double memberRate() const {
    double rate = kNever;
    for (const int g : cell_.live()) {
      const auto& ranks = cell_.groups[static_cast<std::size_t>(g)].ranks;
      for (const int from : ranks) {
        for (const int to : ranks) {
          const double link = from == to ? 0 : topology_.link(from, to);
          if (link > 0) rate = std::min(rate, link);
        }
      }
    }
    return rate;
  }

  bool missesMemberLink() const {
    for (const int g : cell_.live()) {
      const auto& ranks = cell_.groups[static_cast<std::size_t>(g)].ranks;
      for (const int from : ranks) {
        for (const int to : ranks) {
          if (from != to && topology_.link(from, to) <= 0) return true;
        }
      }
    }
    return false;
  }

  Seconds unitOf(const Candidate& candidate) const {
    if (candidate.linkRate <= 0) return linkTime_;
    return *std::max_element(cell_.blockBytes.begin(), cell_.blockBytes.end()) / candidate.linkRate;
  }

  // Latencies of the first byte's way, then the slower of the links and, where data is passed on, a
  // lane's ring of three slots (three pieces take two transfers and a latency), then the posting.
  Seconds estimate(const Candidate& candidate) const {
    // Shares are cut in whole units: in every stage a link may carry one more than its part.
    const Seconds links = candidate.value * linkTime_ + candidate.stages * unitTime_;
    const Seconds ring =
        candidate.hops < 2 ? 0 : (2 * links + candidate.stages * topology_.alpha) / 3;
    return candidate.hops * topology_.alpha + std::max(links, ring) +
           candidate.messagesPerRank * topology_.message;
  }

  Seconds timeOf(const Schedule& schedule) const {
    if (hasMappedPhases(schedule)) {
      return predictMapped(schedule, topology_, cell_.blockBytes, cell_.partialWeight,
                           cell_.coresForAll);
    }
    const Seconds onHost =
        cell_.mappedBytes > 0
            ? costOfMessages(schedule, topology_, cell_.blockBytes, cell_.partialWeight)
            : 0;
    return onHost + predictWithin(request_.stageQuota, schedule, dependencesOf(schedule),
                                  shared_ ? *shared_ : topology_, cell_.blockBytes,
                                  cell_.partialWeight);
  }

  const ConsideredCandidate& built(std::size_t i) const { return plan_.considered[i]; }

  void buildAndPredict(std::size_t i) {
    if (schedules_[i]) return;
    schedules_[i] = candidates_[i].build();
    plan_.considered[i].predicted = timeOf(*schedules_[i]);
    // Messages of other live groups come in between; seen on a virtual clock.
    if (shared_ && !candidates_[i].direct) plan_.considered[i].predicted += topology_.alpha;
  }

  void predictBest(bool direct) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i].direct == direct) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return coarse(built(a).estimate) < coarse(built(b).estimate);
    });
    if (order.size() > kBuilt) order.resize(kBuilt);
    // The shortest link time first: for large calls nothing else can win then.
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return coarse(candidates_[a].value) < coarse(candidates_[b].value);
    });
    Seconds fastest = kNever;
    for (const auto i : order) {
      const Seconds least = topology_.alpha + candidates_[i].value * linkTime_;
      if (regular_ && coarse(least) > coarse(fastest * kTie)) continue;  // it cannot win
      buildAndPredict(i);
      fastest = std::min(fastest, built(i).predicted);
    }
  }

  // The formulas know neither slow links nor ports.
  void predictAllSmall() {
    if (cell_.ranks > kEstimatesMislead) return;
    for (std::size_t i = 0; i < candidates_.size(); ++i) buildAndPredict(i);
  }

  std::optional<std::size_t> best(bool direct) const {
    std::vector<Judged> judged;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i].direct != direct || !schedules_[i] || built(i).predicted == kNever) {
        continue;
      }
      judged.push_back({i, built(i).predicted, static_cast<int>(schedules_[i]->transfers.size())});
    }
    if (judged.empty()) return std::nullopt;
    return bestOf(judged).index;
  }

  std::size_t choose(std::size_t direct) {
    if (request_.force == "direct" && !candidates_[direct].direct) refuseUnreachable();
    if (request_.force == "direct") return direct;
    if (!request_.force.empty()) return forced();
    predictBest(false);
    auto relay = best(false);
    if (relay && packsLess(*relay)) relay = best(false);
    if (!relay) return direct;
    const bool pays = coarse(built(*relay).predicted) <
                      coarse((1 - kRelayMargin) * coarse(built(direct).predicted));
    return pays ? *relay : direct;
  }

  // The regular constructions keep whole shares in stage memory, those of the LP's routes a ring of
  // three pieces. Where the quota cuts the best into rounds, the latter are candidates, too.
  bool packsLess(std::size_t relay) {
    if (!regular_ || !mayRound() || !paysToPack() || has(kPacking)) return false;
    if (cell_.ranks > kPackingRanks || topology_.bus > 0) return false;
    const auto rounds =
        roundsFor(*schedules_[relay], cell_.blockBytes, cell_.partialWeight, request_.stageQuota);
    if (rounds.count == 1) return false;
    const auto first = candidates_.size();
    add(packedCandidates(cell_, false), true);
    for (auto i = first; i < candidates_.size(); ++i) buildAndPredict(i);
    return true;
  }

  std::size_t forced() {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i].name != request_.force) continue;
      buildAndPredict(i);
      if (built(i).predicted == kNever) refuseMissingLink(i);
      return i;
    }
    refuseName();
  }

  [[noreturn]] void refuseName() const {
    std::vector<std::string> names{"direct"};
    for (const auto& candidate : candidates_) {
      if (candidate.name != "direct") names.push_back(candidate.name);
    }
    refuse(fmt::format("\"{}\" is no schedule for this {}; there are: {}", request_.force,
                       toString(request_.collective), fmt::join(names, ", ")));
  }

  // All direct schedules that were built cross a missing link.
  [[noreturn]] void refuseUnreachable() const {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (schedules_[i]) refuseMissingLink(i);
    }
    throw Error(ErrorCode::Internal,
                fmt::format("plan: no direct schedule for this {}", toString(request_.collective)));
  }

  [[noreturn]] void refuseMissingLink(std::size_t i) const {
    for (const auto& transfer : schedules_[i]->transfers) {
      if (topology_.link(transfer.from.rank, transfer.to.rank) > 0) continue;
      refuse(fmt::format("topology {} has no link from rank {} to rank {}, which {} ({}) needs",
                         topology_.name, transfer.from.rank, transfer.to.rank,
                         toString(request_.collective), candidates_[i].name));
    }
    refuse(fmt::format("topology {} has a port of rate 0 that {} needs", topology_.name,
                       toString(request_.collective)));
  }

  const PlanRequest& request_;
  const Topology& topology_;
  std::optional<Topology> shared_;  // with half of helpers' links, where other groups are live
  Cell cell_;
  bool regular_ = false;
  Seconds linkTime_ = 0;  // of the largest block
  Seconds unitTime_ = 0;  // of the unit in which blocks are cut
  std::vector<Candidate> candidates_;
  std::vector<std::optional<Schedule>> schedules_;  // those that were built
  Plan plan_;                                       // considered[i] is candidates_[i]
};

}  // namespace

bool mayPack(const PlanRequest& request, const Topology& topology) {
  validate(request, topology);
  return Choice(request, topology).mayPack();
}

Plan plan(const PlanRequest& request, const Topology& topology) {
  validate(request, topology);
  return Choice(request, topology).make();
}

}  // namespace byway
