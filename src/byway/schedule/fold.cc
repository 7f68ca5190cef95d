// SPDX-License-Identifier: BSD-3-Clause
#include "byway/schedule/fold.h"

#include <utility>

#include "byway/base/error.h"

namespace byway {

ValueTable::ValueTable() { nodes_.emplace_back(); }

ValueId ValueTable::intern(Node node) {
  const auto [it, isNew] = ids_.try_emplace(std::move(node), static_cast<ValueId>(nodes_.size()));
  if (isNew) nodes_.push_back(it->first);
  return it->second;
}

ValueId ValueTable::raw(int position) {
  return intern({ValueKind::Raw, static_cast<std::uint32_t>(position), {}});
}

ValueId ValueTable::fold(const std::vector<ValueId>& terms) {
  BYWAY_ASSERT(!terms.empty());
  Node node{ValueKind::Partial, 0, {}};
  if (kind(terms[0]) == ValueKind::Partial) node.terms = nodes_[terms[0]].terms;
  node.terms.insert(node.terms.end(), terms.begin() + (node.terms.empty() ? 0 : 1), terms.end());
  return intern(std::move(node));
}

ValueId ValueTable::finished(ValueId partial, std::uint32_t divisor) {
  return intern({ValueKind::Final, divisor, {partial}});
}

std::string ValueTable::text(ValueId id) const {
  const Node& node = nodes_[id];
  std::string terms;
  for (const ValueId t : node.terms) terms += (terms.empty() ? "" : " + ") + text(t);
  switch (node.kind) {
    case ValueKind::None:
      return "nothing";
    case ValueKind::Raw:
      return "x" + std::to_string(node.number);
    case ValueKind::Partial:
      return "(" + terms + ")";
    case ValueKind::Final:
      return "finished" + terms + "/" + std::to_string(node.number);
  }
  return "?";
}

ValueId expectedFold(ValueTable& table, int size, int owner) {
  std::vector<ValueId> sums;
  for (int first = 0; first < size; first += kFoldBlock) {
    std::vector<ValueId> block;
    for (int i = first; i < size && i < first + kFoldBlock; ++i) {
      if (i != owner) block.push_back(table.raw(i));
    }
    // A block of one contribution is that contribution: there is nothing to fold.
    if (block.size() == 1) {
      sums.push_back(block[0]);
    } else if (!block.empty()) {
      sums.push_back(table.fold(block));
    }
  }
  if (owner >= 0) sums.push_back(table.raw(owner));
  return table.fold(sums);
}

}  // namespace byway
