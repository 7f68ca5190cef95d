// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/packing_master.h"

#include <algorithm>
#include <iterator>

#include "byway/planner/packing_lp.h"

namespace byway {
namespace {

// Links that the LP does not find scarce cost this part of the mean price, so that routes do not
// wander.
constexpr double kLeastPrice = 1e-3;
// How far prices stay where they gave the best bound: duals of a degenerate LP jump.
constexpr double kSmoothing = 0.6;
// Routes must be cheaper by this part to be worth a column.
constexpr double kCheaper = 1e-7;

class Generation {
 public:
  Generation(const PackingProblem& problem, const PackingOptions& options)
      : problem_(problem),
        options_(options),
        lp_(problem, options.stages),
        exact_(RouteSearch::exact(problem)) {}

  PackedRoutes run() && {
    result_.packing.stages = options_.stages;
    routes_ = plainRoutes(problem_);
    lp_.add(routes_);
    best_ = start();
    price(best_, kNoWay);  // a route for every job, whatever links there are
    for (; result_.rounds < options_.rounds; ++result_.rounds) {
      if (!lp_.solve()) break;
      result_.packing.time = lp_.time();
      if (lp_.time() - result_.bound <= options_.gap * lp_.time()) break;
      if (isStuck() || !improve()) break;
    }
    result_.packing.amounts = lp_.amounts();
    result_.routes = std::move(routes_);
    return std::move(result_);
  }

 private:
  bool isStuck() {
    if (lp_.time() < (1 - options_.gap) * gainTime_) {
      gainTime_ = lp_.time();
      gainRound_ = result_.rounds;
    }
    return result_.rounds - gainRound_ > options_.patience;
  }

  std::vector<double> start() const {
    std::vector<double> prices(lp_.prices().size(), 1.0);
    lp_.normalise(prices);
    return prices;
  }

  // Adds routes that are too cheap; false when there are none, so that the LP is solved.
  bool improve() {
    auto prices = lp_.prices();
    const double least = kLeastPrice / static_cast<double>(prices.size());
    for (double& p : prices) p = std::max(p, least);
    lp_.normalise(prices);
    auto smooth = prices;
    for (std::size_t i = 0; i < prices.size(); ++i) {
      smooth[i] = kSmoothing * best_[i] + (1 - kSmoothing) * prices[i];
    }
    return price(smooth, 0) || price(prices, 0);
  }

  // Searches at `prices`; adds the routes that the LP's own prices find cheaper than what it has by
  // more than -`allowance`. Returns whether there were any.
  bool price(const std::vector<double>& prices, double allowance) {
    const RouteSearch search(problem_, lp_.linkPrices(prices), options_.stages);
    const bool solved = allowance == 0;
    const auto own = solved ? lp_.linkPrices(lp_.prices()) : std::vector<double>{};
    const auto values = solved ? lp_.values() : std::vector<double>{};
    std::vector<PackingRoute> added;
    double bound = 0;
    for (std::size_t j = 0; j < problem_.jobs.size(); ++j) {
      double cheapest = kNoWay;
      for (auto& found : search.cheapest(j)) {
        cheapest = std::min(cheapest, found.cost);
        if (!solved || costOf(found.route, own) < values[j] * (1 - kCheaper)) {
          added.push_back(std::move(found.route));
        }
      }
      if (problem_.jobs[j].size > 0) bound += problem_.jobs[j].size * cheapest;
    }
    if (bound > bestBound_) {
      bestBound_ = bound;
      best_ = prices;
      if (exact_) result_.bound = bound;
    }
    lp_.add(added);
    const bool any = !added.empty();
    std::move(added.begin(), added.end(), std::back_inserter(routes_));
    return any;
  }

  double costOf(const PackingRoute& route, const std::vector<double>& linkPrices) const {
    double cost = 0;
    for (const auto& [link, load] : route.loads) cost += load * linkPrices[link];
    return cost * pipelineFactor(options_.stages, route.depth);
  }

  const PackingProblem& problem_;
  const PackingOptions& options_;
  PackingLp lp_;
  std::vector<PackingRoute> routes_;
  std::vector<double> best_;  // the prices that gave the best bound
  double bestBound_ = 0;
  const bool exact_;
  double gainTime_ = kNoWay;
  int gainRound_ = 0;
  PackedRoutes result_;
};

}  // namespace

PackedRoutes packRoutes(const PackingProblem& problem, const PackingOptions& options) {
  return Generation(problem, options).run();
}

Packing repack(const PackingProblem& problem, const std::vector<PackingRoute>& routes, int stages) {
  PackingLp lp(problem, stages);
  lp.add(routes);
  if (!lp.solve()) return {};
  return {stages, lp.time(), lp.amounts()};
}

double packedTime(const PackingProblem& problem, const std::vector<PackingRoute>& routes,
                  const Packing& packing) {
  const auto n = static_cast<std::size_t>(problem.ranks);
  std::vector<double> links(n * n), out(n), in(n);
  double all = 0;
  for (std::size_t r = 0; r < routes.size(); ++r) {
    if (packing.amounts[r] <= 0) continue;
    const double amount = packing.amounts[r] * pipelineFactor(packing.stages, routes[r].depth);
    for (const auto& [link, load] : routes[r].loads) {
      links[link] += amount * load;
      out[link / n] += amount * load;
      in[link % n] += amount * load;
      all += amount * load;
    }
  }
  double time = all / problem.bus;
  for (std::size_t i = 0; i < n * n; ++i) {
    if (links[i] > 0) time = std::max(time, links[i] / problem.rates[i]);
  }
  for (std::size_t r = 0; r < n; ++r) {
    if (out[r] > 0) time = std::max(time, out[r] / problem.egress[r]);
    if (in[r] > 0) time = std::max(time, in[r] / problem.ingress[r]);
  }
  return time;
}

}  // namespace byway
