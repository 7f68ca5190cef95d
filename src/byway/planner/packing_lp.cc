// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/packing_lp.h"

#include <algorithm>
#include <map>
#include <utility>

#include <ClpSimplex.hpp>

namespace byway {

struct PackingLp::Model {
  ClpSimplex clp;
  std::vector<int> columnOfRoute;  // -1: does not fit
};

PackingLp::PackingLp(const PackingProblem& problem, int stages)
    : problem_(problem), stages_(stages), model_(std::make_unique<Model>()) {
  listScarce();
  std::vector<double> lower(scarce_.size(), -COIN_DBL_MAX), upper(scarce_.size(), 0.0);
  for (const auto& job : problem.jobs) {
    rowOfJob_.push_back(job.size > 0 ? static_cast<int>(lower.size()) : -1);
    if (job.size <= 0) continue;
    lower.push_back(job.size);
    upper.push_back(job.size);
  }
  ClpSimplex& clp = model_->clp;
  clp.setLogLevel(0);
  clp.resize(static_cast<int>(lower.size()), 0);
  for (std::size_t r = 0; r < lower.size(); ++r) {
    clp.setRowBounds(static_cast<int>(r), lower[r], upper[r]);
  }
  std::vector<int> rows;
  std::vector<double> factors;
  for (std::size_t s = 0; s < scarce_.size(); ++s) {
    rows.push_back(static_cast<int>(s));
    factors.push_back(-scarce_[s].rate);
  }
  const double zero = 0, one = 1, most = COIN_DBL_MAX;
  const int starts[] = {0, static_cast<int>(rows.size())};
  clp.addColumns(1, &zero, &most, &one, starts, rows.data(), factors.data());
}

PackingLp::~PackingLp() = default;

void PackingLp::listScarce() {
  const int n = problem_.ranks;
  rowsOfLink_.resize(problem_.rates.size());
  std::vector<std::size_t> all;
  for (std::size_t link = 0; link < problem_.rates.size(); ++link) {
    if (problem_.rates[link] <= 0) continue;
    addScarce(problem_.rates[link], {link});
    all.push_back(link);
  }
  for (int r = 0; r < n; ++r) {
    std::vector<std::size_t> out, in;
    for (int other = 0; other < n; ++other) {
      out.push_back(problem_.link(r, other));
      in.push_back(problem_.link(other, r));
    }
    addScarce(problem_.egress[static_cast<std::size_t>(r)], std::move(out));
    addScarce(problem_.ingress[static_cast<std::size_t>(r)], std::move(in));
  }
  addScarce(problem_.bus, std::move(all));
}

// What suffices for all its links at once is not scarce.
void PackingLp::addScarce(double rate, std::vector<std::size_t> links) {
  double sum = 0;
  for (const auto link : links) sum += problem_.rates[link];
  if (sum == 0 || (links.size() > 1 && sum <= rate)) return;
  for (const auto link : links) rowsOfLink_[link].push_back(scarce_.size());
  scarce_.push_back({rate, std::move(links)});
}

void PackingLp::add(std::span<const PackingRoute> routes) {
  std::vector<int> starts{0}, rows;
  std::vector<double> factors;
  int next = model_->clp.numberColumns();
  for (const auto& route : routes) {
    const int jobRow = rowOfJob_[route.job];
    const double pipeline = pipelineFactor(stages_, route.depth);
    const bool fits = jobRow >= 0 && pipeline != kNoWay;
    model_->columnOfRoute.push_back(fits ? next++ : -1);
    if (!fits) continue;
    std::map<std::size_t, double> loads;
    for (const auto& [link, load] : route.loads) {
      for (const auto row : rowsOfLink_[link]) loads[row] += load * pipeline;
    }
    for (const auto& [row, load] : loads) {
      rows.push_back(static_cast<int>(row));
      factors.push_back(load);
    }
    rows.push_back(jobRow);
    factors.push_back(1);
    starts.push_back(static_cast<int>(rows.size()));
  }
  const auto count = starts.size() - 1;
  const std::vector<double> zeros(count, 0.0), most(count, COIN_DBL_MAX);
  model_->clp.addColumns(static_cast<int>(count), zeros.data(), most.data(), zeros.data(),
                         starts.data(), rows.data(), factors.data());
}

bool PackingLp::solve() {
  model_->clp.primal();
  return model_->clp.isProvenOptimal();
}

double PackingLp::time() const { return model_->clp.objectiveValue(); }

std::vector<double> PackingLp::amounts() const {
  std::vector<double> result;
  const double* values = model_->clp.primalColumnSolution();
  for (const int column : model_->columnOfRoute) {
    result.push_back(column < 0 ? 0 : std::max(0.0, values[column]));
  }
  return result;
}

std::vector<double> PackingLp::prices() const {
  std::vector<double> result;
  const double* duals = model_->clp.dualRowSolution();
  for (std::size_t s = 0; s < scarce_.size(); ++s) result.push_back(std::max(0.0, -duals[s]));
  return result;
}

std::vector<double> PackingLp::values() const {
  std::vector<double> result;
  const double* duals = model_->clp.dualRowSolution();
  for (const int row : rowOfJob_) result.push_back(row < 0 ? 0 : duals[row]);
  return result;
}

std::vector<double> PackingLp::linkPrices(std::span<const double> prices) const {
  std::vector<double> result(rowsOfLink_.size(), 0.0);
  for (std::size_t link = 0; link < result.size(); ++link) {
    for (const auto row : rowsOfLink_[link]) result[link] += prices[row];
  }
  return result;
}

void PackingLp::normalise(std::vector<double>& prices) const {
  double sum = 0;
  for (std::size_t s = 0; s < scarce_.size(); ++s) sum += scarce_[s].rate * prices[s];
  for (double& price : prices) price /= sum;
}

}  // namespace byway
