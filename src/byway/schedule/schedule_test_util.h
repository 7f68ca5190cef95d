// SPDX-License-Identifier: BSD-3-Clause
// Small right schedules written by hand, one for each collective and way of relaying.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "byway/schedule/schedule.h"

namespace byway::testing_util {

// A builder with the refs of one piece that hand-written schedules are made of.
class Hand : public ScheduleBuilder {
 public:
  using ScheduleBuilder::ScheduleBuilder;
  Ref in(int rank, int block = 0, int share = 0) {
    return ref(Space::Input, rank, piece(block, share));
  }
  Ref out(int rank, int block = 0, int share = 0) {
    return ref(Space::Output, rank, piece(block, share));
  }
  Ref at(int rank, std::uint32_t slot, int block = 0, int share = 0, Width width = Width::Element) {
    return ref(Space::Stage, rank, piece(block, share, slot), width);
  }
  Ref slot(int rank, int block = 0, int share = 0, Width width = Width::Element) {
    return at(rank, newSlot(rank), block, share, width);
  }
  void fold(const Ref& to, std::initializer_list<Ref> inputs, int divisor) {
    reduce(to, std::span(inputs.begin(), inputs.size()), divisor);
  }
  // What all-gather, broadcast and the like do with a rank's own part.
  void keepOwn(int rank, int block = 0, int share = 0) {
    copy(out(rank, block, share), in(rank, block, share), true);
  }

  static Piece piece(int block, int share, std::uint32_t slot = 0) {
    return {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(share), slot};
  }
};

inline Shape cutEvenly(Shape shape, int parts, int direct = 1) {
  const auto n = static_cast<std::uint64_t>(parts);
  for (Block& block : shape.blocks) {
    block.shares.assign(n, kWhole / n);
    block.shares.back() += kWhole % n;
    block.directShares = direct;
  }
  return shape;
}

inline std::vector<int> upTo(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// Allreduce: every member folds everybody's contribution, in blocks of 16 where there are more.
inline Schedule exchange(const std::vector<int>& members, int ranks) {
  Hand h(makeShape(Collective::AllReduce, ranks, {Group{members, 0}}), "exchange");
  h.beginPhase();
  std::vector<std::vector<Ref>> terms(members.size());
  for (std::size_t to = 0; to < members.size(); ++to) {
    for (const int from : members) {
      const bool own = from == members[to];
      terms[to].push_back(own ? h.in(from) : h.slot(members[to]));
      if (!own) h.transfer(h.in(from), terms[to].back());
    }
  }
  for (std::size_t to = 0; to < members.size(); ++to) {
    std::vector<Ref> sums;
    for (std::size_t first = 0; first < members.size(); first += 16) {
      const auto count = std::min<std::size_t>(16, members.size() - first);
      const auto block = std::span(terms[to]).subspan(first, count);
      if (members.size() <= 16 || count == 1) {
        sums.insert(sums.end(), block.begin(), block.end());
      } else {
        sums.push_back(h.slot(members[to], 0, 0, Width::Accumulator));
        h.reduce(sums.back(), block, 1);
      }
    }
    h.reduce(h.out(members[to]), sums, static_cast<int>(members.size()));
  }
  return std::move(h).finish();
}

// Allreduce of pairs, all in one call: share 0 is exchanged, share 1 + i goes through the i-th
// helper, which sums it in place in a slot and sends the sum to both.
inline Schedule relayedPairs(const std::vector<std::pair<int, int>>& pairs, int ranks) {
  std::vector<Group> groups;
  for (const auto& [a, b] : pairs) groups.push_back({{a, b}, 0});
  const Shape shape = cutEvenly(makeShape(Collective::AllReduce, ranks, groups), ranks - 1);
  Hand h(shape, "relayed pairs");
  const int count = static_cast<int>(pairs.size());
  const auto eachHelper = [&](int g, const auto& fn) {
    const auto& [a, b] = pairs[static_cast<std::size_t>(g)];
    int share = 0;
    for (int r = 0; r < ranks; ++r) {
      if (r != a && r != b) fn(a, b, r, ++share);
    }
  };
  std::vector<Ref> exchanged;
  std::vector<std::pair<Ref, Ref>> raised;
  h.beginPhase();
  for (int g = 0; g < count; ++g) {
    const auto& [a, b] = pairs[static_cast<std::size_t>(g)];
    exchanged.insert(exchanged.end(), {h.slot(a, g), h.slot(b, g)});
    h.transfer(h.in(b, g), exchanged[exchanged.size() - 2]);
    h.transfer(h.in(a, g), exchanged.back());
    eachHelper(g, [&](int first, int second, int helper, int share) {
      const Ref fromFirst = h.slot(helper, g, share);  // in this order: each call makes a slot
      const Ref fromSecond = h.slot(helper, g, share);
      raised.emplace_back(fromFirst, fromSecond);
      h.transfer(h.in(first, g, share), raised.back().first);
      h.transfer(h.in(second, g, share), raised.back().second);
    });
  }
  for (int g = 0; g < count; ++g) {
    const auto& [a, b] = pairs[static_cast<std::size_t>(g)];
    const auto i = 2 * static_cast<std::size_t>(g);
    h.fold(h.out(a, g), {h.in(a, g), exchanged[i]}, 2);
    h.fold(h.out(b, g), {exchanged[i + 1], h.in(b, g)}, 2);
  }
  for (const auto& [first, second] : raised) h.fold(first, {first, second}, 2);
  h.beginPhase();
  std::size_t next = 0;
  for (int g = 0; g < count; ++g) {
    eachHelper(g, [&](int first, int second, int, int share) {
      h.transfer(raised[next].first, h.out(first, g, share));
      h.transfer(raised[next++].first, h.out(second, g, share));
    });
  }
  return std::move(h).finish();
}

inline Schedule allGather(int size) {
  Hand h(makeShape(Collective::AllGather, size, {Group{upTo(size), 0}}), "all-gather");
  h.beginPhase();
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      if (to != from) h.transfer(h.in(from, from), h.out(to, from));
    }
  }
  for (int r = 0; r < size; ++r) h.keepOwn(r, r);
  return std::move(h).finish();
}

// Three members and helper 3, which folds the two others' parts for each owner.
inline Schedule reduceScatterByPartials() {
  Hand h(makeShape(Collective::ReduceScatter, 4, {Group{upTo(3), 0}}), "partials");
  std::vector<Ref> raw;
  h.beginPhase();
  for (int owner = 0; owner < 3; ++owner) {
    for (int from = 0; from < 3; ++from) {
      if (from == owner) continue;
      raw.push_back(h.slot(3, owner));
      h.transfer(h.in(from, owner), raw.back());
    }
  }
  std::vector<Ref> partial;
  for (int owner = 0; owner < 3; ++owner) {
    const auto i = 2 * static_cast<std::size_t>(owner);
    partial.push_back(h.slot(3, owner, 0, Width::Accumulator));
    h.fold(partial.back(), {raw[i], raw[i + 1]}, 1);
  }
  h.beginPhase();
  std::vector<Ref> arrived;
  for (int owner = 0; owner < 3; ++owner) {
    arrived.push_back(h.slot(owner, owner, 0, Width::Accumulator));
    h.transfer(partial[static_cast<std::size_t>(owner)], arrived.back());
  }
  for (int owner = 0; owner < 3; ++owner) {
    h.fold(h.out(owner, owner), {arrived[static_cast<std::size_t>(owner)], h.in(owner, owner)}, 3);
  }
  return std::move(h).finish();
}

// Members 2, 0, 1 with root 2, helper 3: share 0 straight, 1 through member 0, 2 through the
// helper.
inline Schedule forwardedBroadcast() {
  Hand h(cutEvenly(makeShape(Collective::Broadcast, 4, {Group{{2, 0, 1}, 0}}), 3), "forwarded");
  h.beginPhase();
  h.transfer(h.in(2, 0, 0), h.out(0, 0, 0));
  h.transfer(h.in(2, 0, 0), h.out(1, 0, 0));
  h.transfer(h.in(2, 0, 1), h.out(0, 0, 1));
  h.transfer(h.in(2, 0, 2), h.slot(3, 0, 2));
  for (int share = 0; share < 3; ++share) h.keepOwn(2, 0, share);
  h.beginPhase();
  h.transfer(h.out(0, 0, 1), h.out(1, 0, 1));
  h.transfer(h.at(3, 0, 0, 2), h.out(0, 0, 2));
  h.transfer(h.at(3, 0, 0, 2), h.out(1, 0, 2));
  return std::move(h).finish();
}

inline Schedule allToAll(int size) {
  Hand h(makeShape(Collective::AllToAll, size, {Group{upTo(size), 0}}), "all-to-all");
  h.beginPhase();
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      if (to != from) h.transfer(h.in(from, from * size + to), h.out(to, from * size + to));
    }
  }
  for (int r = 0; r < size; ++r) h.copy(h.out(r, r * size + r), h.in(r, r * size + r), false);
  return std::move(h).finish();
}

// Members 1, 2, 3 with root 2 at position 1, helper 0. All that is relayed goes in one message of
// two pieces.
inline Schedule coalescedScatter() {
  Hand h(cutEvenly(makeShape(Collective::Scatter, 4, {Group{{1, 2, 3}, 1}}), 2), "coalesced");
  const std::vector<Piece> away{Hand::piece(0, 1, h.newSlot(0)), Hand::piece(2, 1, h.newSlot(0))};
  h.beginPhase();
  h.transfer(h.in(2, 0, 0), h.out(1, 0, 0));
  h.transfer(h.in(2, 2, 0), h.out(3, 2, 0));
  h.transfer(h.ref(Space::Input, 2, away), h.ref(Space::Stage, 0, away));
  h.keepOwn(2, 1, 0);
  h.keepOwn(2, 1, 1);
  h.beginPhase();
  h.transfer(h.ref(Space::Stage, 0, away[0]), h.out(1, 0, 1));
  h.transfer(h.ref(Space::Stage, 0, away[1]), h.out(3, 2, 1));
  return std::move(h).finish();
}

inline Schedule gather(int size, int root) {
  Hand h(makeShape(Collective::Gather, size, {Group{upTo(size), root}}), "gather");
  h.beginPhase();
  for (int from = 0; from < size; ++from) {
    if (from != root) h.transfer(h.in(from, from), h.out(root, from));
  }
  h.keepOwn(root, root);
  return std::move(h).finish();
}

// The root folds the others ascending and itself last.
inline Schedule reduceTo(int size, int root) {
  Hand h(makeShape(Collective::Reduce, size, {Group{upTo(size), root}}), "reduce");
  std::vector<Ref> terms;
  h.beginPhase();
  for (int from = 0; from < size; ++from) {
    if (from == root) continue;
    terms.push_back(h.slot(root));
    h.transfer(h.in(from), terms.back());
  }
  terms.push_back(h.in(root));
  h.reduce(h.out(root), terms, size);
  return std::move(h).finish();
}

// Broadcast from 0 to 1 through helper 2, which has one slot for `parts` shares.
inline Schedule slotReuse(int parts) {
  Hand h(cutEvenly(makeShape(Collective::Broadcast, 3, {Group{{0, 1}, 0}}), parts), "slot reuse");
  const auto slot = h.newSlot(2);
  for (int share = 0; share < parts; ++share) {
    h.beginPhase();
    h.transfer(h.in(0, 0, share), h.at(2, slot, 0, share));
    h.keepOwn(0, 0, share);
    h.beginPhase();
    h.transfer(h.at(2, slot, 0, share), h.out(1, 0, share));
  }
  return std::move(h).finish();
}

// One of each, for what must hold for all.
inline std::vector<Schedule> handWritten() {
  return {exchange({0, 1}, 2),
          exchange({3, 0, 2}, 4),
          exchange({0}, 1),
          exchange(upTo(35), 36),
          relayedPairs({{0, 1}}, 3),
          relayedPairs({{0, 1}, {3, 2}}, 5),
          allGather(3),
          reduceScatterByPartials(),
          forwardedBroadcast(),
          allToAll(3),
          coalescedScatter(),
          gather(4, 2),
          reduceTo(4, 1),
          slotReuse(4)};
}

}  // namespace byway::testing_util
