// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/flow_lp.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace byway {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

enum class Kind : std::uint8_t { Plain, Out, In, Raw };

// Who a variable or a row is: packed into 62 bits, unpacked to be renamed.
struct LpName {
  enum What : std::uint8_t {
    Time,
    Flow,
    Use,
    Share,  // variables
    Link,
    Egress,
    Ingress,
    Bus,
    Balance,
    Cover,
    Total  // rows
  };
  static constexpr int kNone = 0x7ff;
  static constexpr unsigned kBits = 11;

  What what;
  Kind kind = Kind::Plain;
  int group = kNone;
  int root = kNone, sink = kNone, from = kNone, to = kNone;

  NamedLp::Name packed() const {
    NamedLp::Name name = what;
    name = name << 3 | static_cast<NamedLp::Name>(kind);
    for (const int field : {group, root, sink, from, to}) {
      name = name << kBits | static_cast<NamedLp::Name>(field);
    }
    return name;
  }

  static LpName unpacked(NamedLp::Name name) {
    const auto take = [&name](unsigned bits) {
      const auto value = static_cast<int>(name & ((NamedLp::Name{1} << bits) - 1));
      name >>= bits;
      return value;
    };
    LpName result{};
    result.to = take(kBits);
    result.from = take(kBits);
    result.sink = take(kBits);
    result.root = take(kBits);
    result.group = take(kBits);
    result.kind = static_cast<Kind>(take(3));
    result.what = static_cast<What>(take(4));
    return result;
  }
};

// Writes the flow LP. A multicast tree is, per destination, a flow of its own below a common usage
// (copies are free at a fork); a sum's in-tree is the same with every link turned round.
class FlowLp {
 public:
  explicit FlowLp(const LimitProblem& problem) : problem_(problem), load_(problem.links.size()) {
    time_ = lp_.variable(LpName{LpName::Time}.packed(), 1.0);
  }

  NamedLp build() && {
    for (int g = 0; g < static_cast<int>(problem_.groups.size()); ++g) addGroup(g);
    for (std::size_t e = 0; e < problem_.links.size(); ++e) {
      const auto& link = problem_.links[e];
      limitLoads(LpName{LpName::Link, Kind::Plain, LpName::kNone, LpName::kNone, LpName::kNone,
                        link.from, link.to},
                 {e}, link.rate);
    }
    addPorts();
    return std::move(lp_);
  }

 private:
  using Terms = std::vector<NamedLp::Term>;

  // An amount that a tree carries: a number, or a share that the LP chooses.
  struct Amount {
    double fixed = 0;
    NamedLp::Variable share = 0;
    bool chosen = false;
  };

  struct Tree {
    Kind kind;
    int group;
    int root;
    bool reversed = false;  // an in-tree: flows run against the links
  };

  void addGroup(int g) {
    const auto& group = problem_.groups[static_cast<std::size_t>(g)];
    const Amount count{group.count};
    switch (problem_.pattern) {
      case LimitProblem::Pattern::Sums:
        addSums(g);
        break;
      case LimitProblem::Pattern::Copies:
        for (const int source : group.sources) {
          multicast({Kind::Plain, g, source}, others(group.members, source), count);
        }
        break;
      case LimitProblem::Pattern::Pieces:
        for (const int source : group.sources) {
          unicast({Kind::Plain, g, source}, others(group.members, source), count);
        }
        break;
    }
  }

  // Every share of the data is summed at some rank and sent on from there, or exchanged raw.
  void addSums(int g) {
    const auto& group = problem_.groups[static_cast<std::size_t>(g)];
    Terms total;
    const auto share = [&](Kind kind, int root) {
      const auto x = lp_.variable(LpName{LpName::Share, kind, g, root}.packed());
      total.push_back({x, 1.0});
      return Amount{0, x, true};
    };
    for (const int root : problem_.nodesOf(g)) {
      const auto amount = share(Kind::Out, root);
      multicast({Kind::Out, g, root}, others(group.members, root), amount);
      multicast({Kind::In, g, root, true}, others(group.members, root), amount);
    }
    if (group.members.size() > 2) {  // of two, an exchange is a sum at a member
      const auto raw = share(Kind::Raw, LpName::kNone);
      for (const int source : group.members) {
        multicast({Kind::Raw, g, source}, others(group.members, source), raw);
      }
    }
    lp_.equal(LpName{LpName::Total, Kind::Plain, g}.packed(), total, group.count);
  }

  static std::vector<int> others(const std::vector<int>& members, int without) {
    auto result = members;
    result.erase(std::remove(result.begin(), result.end(), without), result.end());
    return result;
  }

  // A link as the tree sees it.
  std::pair<int, int> ends(const Tree& tree, std::size_t e) const {
    const auto& link = problem_.links[e];
    return tree.reversed ? std::pair(link.to, link.from) : std::pair(link.from, link.to);
  }

  // The links that a tree may use: none into its root, and none out of `sink` (for kNone: any).
  std::vector<std::size_t> usable(const Tree& tree, int sink) const {
    std::vector<std::size_t> result;
    for (const auto e : problem_.linksOf(tree.group)) {
      const auto [from, to] = ends(tree, e);
      if (to != tree.root && from != sink) result.push_back(e);
    }
    return result;
  }

  // A flow from the tree's root to the sinks; returns its variable on each of `links`.
  std::vector<NamedLp::Variable> flow(const Tree& tree, const std::vector<std::size_t>& links,
                                      const std::vector<int>& sinks, int name, Amount amount) {
    std::vector<NamedLp::Variable> result;
    std::vector<Terms> balance(static_cast<std::size_t>(problem_.ranks));
    for (const auto e : links) {
      const auto [from, to] = ends(tree, e);
      const auto x = lp_.variable(
          LpName{LpName::Flow, tree.kind, tree.group, tree.root, name, from, to}.packed());
      result.push_back(x);
      balance[static_cast<std::size_t>(to)].push_back({x, 1.0});
      balance[static_cast<std::size_t>(from)].push_back({x, -1.0});
    }
    for (const int node : problem_.nodesOf(tree.group)) {
      if (node == tree.root) continue;
      auto& terms = balance[static_cast<std::size_t>(node)];
      const bool sink = std::find(sinks.begin(), sinks.end(), node) != sinks.end();
      if (sink && amount.chosen) terms.push_back({amount.share, -1.0});
      lp_.equal(LpName{LpName::Balance, tree.kind, tree.group, tree.root, name, node}.packed(),
                terms, sink ? amount.fixed : 0.0);
    }
    return result;
  }

  void unicast(const Tree& tree, const std::vector<int>& sinks, Amount amount) {
    const auto links = usable(tree, sinks.size() == 1 ? sinks[0] : LpName::kNone);
    const auto flows = flow(tree, links, sinks, LpName::kNone, amount);
    for (std::size_t i = 0; i < links.size(); ++i) load_[links[i]].push_back({flows[i], 1.0});
  }

  void multicast(const Tree& tree, const std::vector<int>& sinks, Amount amount) {
    if (sinks.size() == 1) return unicast(tree, sinks, amount);
    const auto links = usable(tree, LpName::kNone);
    std::vector<NamedLp::Variable> use(problem_.links.size());
    for (const auto e : links) {
      const auto [from, to] = ends(tree, e);
      use[e] = lp_.variable(
          LpName{LpName::Use, tree.kind, tree.group, tree.root, LpName::kNone, from, to}.packed());
      load_[e].push_back({use[e], 1.0});
    }
    for (const int sink : sinks) {
      const auto path = usable(tree, sink);
      const auto flows = flow(tree, path, {sink}, sink, amount);
      for (std::size_t i = 0; i < path.size(); ++i) {
        const auto [from, to] = ends(tree, path[i]);
        lp_.atMost(LpName{LpName::Cover, tree.kind, tree.group, tree.root, sink, from, to}.packed(),
                   {{flows[i], 1.0}, {use[path[i]], -1.0}}, 0.0);
      }
    }
  }

  // The loads of some links together fit into rate * time.
  void limitLoads(const LpName& name, const std::vector<std::size_t>& links, double rate) {
    Terms terms;
    for (const auto e : links) terms.insert(terms.end(), load_[e].begin(), load_[e].end());
    if (terms.empty()) return;
    terms.push_back({time_, -rate});
    lp_.atMost(name.packed(), terms, 0.0);
  }

  void addPorts() {
    std::vector<std::size_t> all;
    for (std::size_t e = 0; e < problem_.links.size(); ++e) all.push_back(e);
    const auto where = [&](const std::function<bool(const LimitProblem::Link&)>& chosen) {
      std::vector<std::size_t> result;
      for (const auto e : all) {
        if (chosen(problem_.links[e])) result.push_back(e);
      }
      return result;
    };
    for (int r = 0; r < problem_.ranks; ++r) {
      const auto egress = problem_.egress[static_cast<std::size_t>(r)];
      if (egress < kUnlimited) {
        limitLoads(LpName{LpName::Egress, Kind::Plain, LpName::kNone, r},
                   where([r](const auto& link) { return link.from == r; }), egress);
      }
      const auto ingress = problem_.ingress[static_cast<std::size_t>(r)];
      if (ingress < kUnlimited) {
        limitLoads(LpName{LpName::Ingress, Kind::Plain, LpName::kNone, r},
                   where([r](const auto& link) { return link.to == r; }), ingress);
      }
    }
    if (problem_.bus > 0) limitLoads(LpName{LpName::Bus}, all, problem_.bus);
  }

  const LimitProblem& problem_;
  NamedLp lp_;
  NamedLp::Variable time_ = 0;
  std::vector<Terms> load_;  // per link
};

}  // namespace

NamedLp flowLp(const LimitProblem& problem) { return FlowLp(problem).build(); }

NamedLp::Symmetry onNames(const LimitSymmetry& symmetry) {
  return [symmetry](NamedLp::Name name) {
    auto parts = LpName::unpacked(name);
    if (parts.group != LpName::kNone) {
      parts.group = symmetry.group[static_cast<std::size_t>(parts.group)];
    }
    for (int* rank : {&parts.root, &parts.sink, &parts.from, &parts.to}) {
      if (*rank != LpName::kNone) *rank = symmetry.rank[static_cast<std::size_t>(*rank)];
    }
    return parts.packed();
  };
}

NamedLp foldedFlowLp(const LimitProblem& problem) {
  auto lp = flowLp(problem);
  std::vector<NamedLp::Symmetry> symmetries;
  for (const auto& symmetry : symmetriesOf(problem)) symmetries.push_back(onNames(symmetry));
  return symmetries.empty() ? std::move(lp) : lp.folded(symmetries);
}

double flowLpSize(const LimitProblem& problem) {
  double result = 0;
  for (std::size_t g = 0; g < problem.groups.size(); ++g) {
    const auto& group = problem.groups[g];
    const auto index = static_cast<int>(g);
    const auto links = static_cast<double>(problem.linksOf(index).size());
    const auto trees = static_cast<double>(group.sources.size());
    const auto perTree = static_cast<double>(group.members.size()) * links;
    switch (problem.pattern) {
      case LimitProblem::Pattern::Sums:
        result += (2 * static_cast<double>(problem.nodesOf(index).size()) + trees) * perTree;
        break;
      case LimitProblem::Pattern::Copies:
        result += trees * perTree;
        break;
      case LimitProblem::Pattern::Pieces:
        result += trees * links;
        break;
    }
  }
  return result;
}

}  // namespace byway
