// SPDX-License-Identifier: BSD-3-Clause
// Checks and arrangements of tensor lists.
#pragma once

#include <string>
#include <vector>

#include "byway/comm/communicator.h"
#include "byway/torch/tensors.h"

namespace byway::pytorch {

// All of these throw Error{InvalidArgument} that names `what`.
const at::Tensor& onlyOne(const Tensors& tensors, const std::string& what);
const Tensors& onlyOne(const std::vector<Tensors>& lists, const std::string& what);
void checkLength(std::size_t length, std::size_t expected, const std::string& what);
void checkSameType(const at::Tensor& a, const at::Tensor& b);
void checkCount(std::uint64_t count, std::uint64_t expected, const std::string& what);

// Positions in the list by type, in the order in which types come first.
std::vector<std::vector<std::size_t>> byType(const Tensors& tensors, const std::string& what);
Tensors picked(const Tensors& tensors, const std::vector<std::size_t>& indices);
// One count per tensor.
std::vector<std::uint64_t> countsOf(const Tensors& tensors);
bool allEqual(const std::vector<std::uint64_t>& counts);

void append(std::vector<Buffer>& parts, const Region& region);

}  // namespace byway::pytorch
