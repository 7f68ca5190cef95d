// SPDX-License-Identifier: BSD-3-Clause
#include "byway/planner/named_lp.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include <ClpSimplex.hpp>
#include <CoinPackedMatrix.hpp>

#include "byway/base/error.h"

namespace byway {
namespace {

// Which members of a list the symmetries map to each other: orbit[i] numbers i's class densely, in
// order of first members.
class Orbits {
 public:
  Orbits(const std::vector<NamedLp::Name>& names, const std::vector<NamedLp::Symmetry>& symmetries)
      : parent_(names.size()) {
    std::iota(parent_.begin(), parent_.end(), 0U);
    std::vector<std::pair<NamedLp::Name, std::uint32_t>> index;
    index.reserve(names.size());
    for (std::uint32_t i = 0; i < names.size(); ++i) index.emplace_back(names[i], i);
    std::sort(index.begin(), index.end());
    for (const auto& symmetry : symmetries) {
      for (std::uint32_t i = 0; i < names.size(); ++i) {
        const auto image = symmetry(names[i]);
        const auto found = std::lower_bound(index.begin(), index.end(), std::pair(image, 0U));
        BYWAY_ASSERT(found != index.end() && found->first == image);
        join(i, found->second);
      }
    }
    number();
  }

  std::uint32_t of(std::uint32_t i) const { return orbit_[i]; }
  std::uint32_t count() const { return count_; }

 private:
  std::uint32_t root(std::uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::uint32_t a, std::uint32_t b) {
    a = root(a), b = root(b);
    parent_[std::max(a, b)] = std::min(a, b);  // so that a class's root is its first member
  }
  void number() {
    orbit_.resize(parent_.size());
    for (std::uint32_t i = 0; i < parent_.size(); ++i) {
      const auto first = root(i);
      orbit_[i] = first == i ? count_++ : orbit_[first];
    }
  }

  std::vector<std::uint32_t> parent_, orbit_;
  std::uint32_t count_ = 0;
};

}  // namespace

NamedLp::Variable NamedLp::variable(Name name, double cost) {
  variableNames_.push_back(name);
  costs_.push_back(cost);
  return static_cast<Variable>(variableNames_.size() - 1);
}

void NamedLp::addRow(Name name, const std::vector<Term>& terms, double lower, double upper) {
  rowNames_.push_back(name);
  rows_.push_back({static_cast<std::uint32_t>(terms_.size()),
                   static_cast<std::uint32_t>(terms.size()), lower, upper});
  terms_.insert(terms_.end(), terms.begin(), terms.end());
}

void NamedLp::equal(Name row, const std::vector<Term>& terms, double right) {
  addRow(row, terms, right, right);
}

void NamedLp::atMost(Name row, const std::vector<Term>& terms, double right) {
  addRow(row, terms, -std::numeric_limits<double>::infinity(), right);
}

NamedLp NamedLp::folded(const std::vector<Symmetry>& symmetries) const {
  const Orbits columns(variableNames_, symmetries);
  const Orbits lines(rowNames_, symmetries);
  NamedLp result;
  for (std::uint32_t i = 0; i < variableNames_.size(); ++i) {
    const auto orbit = columns.of(i);
    if (orbit == result.variables()) result.variable(variableNames_[i]);
    result.costs_[orbit] += costs_[i];
  }
  // One row stands for its class: the others read the same once their variables are one.
  std::vector<double> factor(columns.count(), 0.0);
  std::vector<std::uint32_t> used;
  for (std::uint32_t r = 0; r < rows_.size(); ++r) {
    if (lines.of(r) != result.rows()) continue;
    used.clear();
    for (std::uint32_t t = rows_[r].first; t < rows_[r].first + rows_[r].count; ++t) {
      const auto orbit = columns.of(terms_[t].variable);
      if (factor[orbit] == 0.0) used.push_back(orbit);
      factor[orbit] += terms_[t].factor;
    }
    std::vector<Term> terms;
    for (const auto orbit : used) {
      if (factor[orbit] != 0.0) terms.push_back({orbit, factor[orbit]});
      factor[orbit] = 0.0;
    }
    result.addRow(rowNames_[r], terms, rows_[r].lower, rows_[r].upper);
  }
  return result;
}

double NamedLp::minimum() const {
  std::vector<int> rowOf, columnOf;
  std::vector<double> factors, lower, upper;
  rowOf.reserve(terms_.size()), columnOf.reserve(terms_.size()), factors.reserve(terms_.size());
  for (const auto& row : rows_) {
    for (std::uint32_t t = row.first; t < row.first + row.count; ++t) {
      rowOf.push_back(static_cast<int>(lower.size()));
      columnOf.push_back(static_cast<int>(terms_[t].variable));
      factors.push_back(terms_[t].factor);
    }
    lower.push_back(row.lower < 0 ? -COIN_DBL_MAX : row.lower);
    upper.push_back(row.upper);
  }
  const CoinPackedMatrix matrix(true, rowOf.data(), columnOf.data(), factors.data(),
                                static_cast<CoinBigIndex>(factors.size()));
  ClpSimplex model;
  model.setLogLevel(0);
  model.loadProblem(matrix, nullptr, nullptr, costs_.data(), lower.data(), upper.data());
  ClpSolve how;
  how.setPresolveType(ClpSolve::presolveOn);
  how.setSolveType(ClpSolve::useDual);
  model.initialSolve(how);
  if (model.isProvenPrimalInfeasible()) {
    throw Error(ErrorCode::InvalidArgument, "no schedule can reach every member");
  }
  BYWAY_ASSERT(model.isProvenOptimal());
  return model.objectiveValue();
}

}  // namespace byway
