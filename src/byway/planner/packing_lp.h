// SPDX-License-Identifier: BSD-3-Clause
// The master problem of the packing LP, in Clp: columns may be added and it is solved again from
// where it stood.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "byway/planner/packing_routes.h"

namespace byway {

// Minimise T: each job's routes carry its size, no link, port or bus more than rate * T in the
// schedule's busiest stage.
class PackingLp {
 public:
  PackingLp(const PackingProblem& problem, int stages);
  ~PackingLp();
  PackingLp(const PackingLp&) = delete;
  PackingLp& operator=(const PackingLp&) = delete;

  // Those that do not fit into the stages stay at 0.
  void add(std::span<const PackingRoute> routes);
  // False when some job has no route.
  bool solve();

  double time() const;
  std::vector<double> amounts() const;  // of the routes in the order of their adding
  // Duals: prices of links, ports and the bus (the sum of rate times price is 1), values of jobs.
  std::vector<double> prices() const;
  std::vector<double> values() const;

  // Prices of links alone, with what ports and the bus charge for them.
  std::vector<double> linkPrices(std::span<const double> prices) const;
  // Scales prices so that rate times price sums up to 1.
  void normalise(std::vector<double>& prices) const;

 private:
  struct Model;  // hides Clp
  // Rows of the scarce things that a link uses.
  struct Scarce {
    double rate;
    std::vector<std::size_t> links;
  };
  void listScarce();
  void addScarce(double rate, std::vector<std::size_t> links);

  const PackingProblem& problem_;
  int stages_;
  std::vector<Scarce> scarce_;                        // rows 0, 1, ...
  std::vector<std::vector<std::size_t>> rowsOfLink_;  // into scarce_
  std::vector<int> rowOfJob_;                         // -1: of no size
  std::unique_ptr<Model> model_;
};

}  // namespace byway
