// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/groups.h"

#include <algorithm>

#include "byway/torch/errors.h"

namespace byway::pytorch {

const at::Tensor& onlyOne(const Tensors& tensors, const std::string& what) {
  checkLength(tensors.size(), 1, what);
  checkTensor(tensors[0], "the tensor");
  return tensors[0];
}

const Tensors& onlyOne(const std::vector<Tensors>& lists, const std::string& what) {
  checkLength(lists.size(), 1, what);
  return lists[0];
}

void checkLength(std::size_t length, std::size_t expected, const std::string& what) {
  if (length == expected) return;
  invalid(what + " has " + std::to_string(length) + " elements; expected " +
          std::to_string(expected));
}

void checkSameType(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() == b.scalar_type()) return;
  invalid(std::string("input and output have types ") + c10::toString(a.scalar_type()) + " and " +
          c10::toString(b.scalar_type()) + "; they must be the same");
}

void checkCount(std::uint64_t count, std::uint64_t expected, const std::string& what) {
  if (count == expected) return;
  invalid(what + " has " + std::to_string(count) + " elements; expected " +
          std::to_string(expected));
}

std::vector<std::vector<std::size_t>> byType(const Tensors& tensors, const std::string& what) {
  if (tensors.empty()) invalid(what + " is empty");
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    checkTensor(tensors[i], "element " + std::to_string(i) + " of " + what);
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return tensors[group[0]].scalar_type() == tensors[i].scalar_type();
    });
    if (same == groups.end())
      groups.push_back({i});
    else
      same->push_back(i);
  }
  return groups;
}

Tensors picked(const Tensors& tensors, const std::vector<std::size_t>& indices) {
  Tensors out;
  out.reserve(indices.size());
  for (const std::size_t i : indices) out.push_back(tensors[i]);
  return out;
}

std::vector<std::uint64_t> countsOf(const Tensors& tensors) {
  std::vector<std::uint64_t> counts;
  counts.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) counts.push_back(countOf(tensor));
  return counts;
}

bool allEqual(const std::vector<std::uint64_t>& counts) {
  return std::all_of(counts.begin(), counts.end(), [&](auto c) { return c == counts[0]; });
}

void append(std::vector<Buffer>& parts, const Region& region) {
  parts.insert(parts.end(), region.parts().begin(), region.parts().end());
}

}  // namespace byway::pytorch
