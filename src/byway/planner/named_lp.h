// SPDX-License-Identifier: BSD-3-Clause
// A linear program whose variables and rows have names, so that symmetries of the problem that it
// came from can be applied to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace byway {

// Minimise cost * x subject to the rows, x >= 0.
class NamedLp {
 public:
  using Name = std::uint64_t;
  using Variable = std::uint32_t;
  struct Term {
    Variable variable;
    double factor;
  };

  // Names are unique among variables, and among rows.
  Variable variable(Name name, double cost = 0);
  void equal(Name row, const std::vector<Term>& terms, double right);
  void atMost(Name row, const std::vector<Term>& terms, double right);

  std::size_t variables() const { return variableNames_.size(); }
  std::size_t rows() const { return rowNames_.size(); }

  // A permutation of the names that maps the program onto itself.
  using Symmetry = std::function<Name(Name)>;

  // The program in which variables that the symmetries map to each other are one. Averaging a
  // solution over the symmetries keeps it feasible and its cost, so the minimum is the same.
  NamedLp folded(const std::vector<Symmetry>& symmetries) const;

  // Throws Error{InvalidArgument} when nothing satisfies the rows.
  double minimum() const;

 private:
  struct Row {
    std::uint32_t first, count;  // in terms_
    double lower, upper;
  };
  void addRow(Name name, const std::vector<Term>& terms, double lower, double upper);

  std::vector<Name> variableNames_, rowNames_;
  std::vector<double> costs_;
  std::vector<Row> rows_;
  std::vector<Term> terms_;
};

}  // namespace byway
