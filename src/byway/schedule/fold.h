// SPDX-License-Identifier: BSD-3-Clause
// The order in which contributions are folded, and a symbolic form of what a place holds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace byway {

// Groups of more than this many members fold blocks of as many consecutive members, then the sums.
inline constexpr int kFoldBlock = 16;

enum class ValueKind : std::uint8_t { None, Raw, Partial, Final };
using ValueId = std::uint32_t;  // 0: nothing was written

// Values by structure: equal ids mean the same contributions folded in the same order. The share
// that a value belongs to is kept beside the id.
class ValueTable {
 public:
  ValueTable();
  // The contribution of (or the data from) the member at `position`.
  ValueId raw(int position);
  // A fold from the left; a partial in front is continued, elsewhere it counts as one term.
  ValueId fold(const std::vector<ValueId>& terms);
  // A fold that was divided by `divisor` (AVG) and rounded.
  ValueId finished(ValueId partial, std::uint32_t divisor);

  ValueKind kind(ValueId id) const { return nodes_[id].kind; }
  std::string text(ValueId id) const;

 private:
  struct Node {
    ValueKind kind = ValueKind::None;
    std::uint32_t number = 0;  // position or divisor
    std::vector<ValueId> terms;
    auto operator<=>(const Node&) const = default;
  };
  ValueId intern(Node node);
  std::vector<Node> nodes_;
  std::map<Node, ValueId> ids_;
};

// What the stated order demands of a group of `size` members: all members ascending, or, with an
// owner, the others ascending and the owner last.
ValueId expectedFold(ValueTable& table, int size, int owner);

}  // namespace byway
