// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/sparse.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <utility>
#include <vector>

#include "byway/torch/errors.h"

namespace byway::pytorch {
namespace {

using Counts = std::vector<std::uint64_t>;

// What ranks tell each other first: {elements, sparse dimensions, sizes...}.
std::vector<std::int64_t> recordOf(const at::Tensor& tensor) {
  std::vector<std::int64_t> record{tensor._nnz(), tensor.sparse_dim()};
  record.insert(record.end(), tensor.sizes().begin(), tensor.sizes().end());
  return record;
}

Region regionOf(std::vector<std::int64_t>& numbers) {
  return {numbers.data(), numbers.size() * sizeof(std::int64_t)};
}

Counts exchangeElements(Call& call, int size, const at::Tensor& tensor) {
  std::vector<std::int64_t> mine = recordOf(tensor);
  std::vector<std::int64_t> all(mine.size() * static_cast<std::size_t>(size));
  call.submit([&](const CallOptions& options) {
    Work work = call.communicator().allGather(regionOf(mine), regionOf(all), mine.size(),
                                              DType::Int64, options);
    work.wait();
    return work;
  });
  Counts elements;
  for (int rank = 0; rank < size; ++rank) {
    const std::int64_t* const record = &all[mine.size() * static_cast<std::size_t>(rank)];
    elements.push_back(static_cast<std::uint64_t>(record[0]));
    for (std::size_t i = 1; i < mine.size(); ++i) {
      if (record[i] == mine[i]) continue;
      invalid("the sparse tensor of rank " + std::to_string(rank) +
              " has another shape or number of sparse dimensions; they must be the same");
    }
  }
  return elements;
}

at::Tensor gatherParts(Call& call, const at::Tensor& mine, const Counts& counts, DType dtype) {
  std::uint64_t total = 0;
  for (const std::uint64_t count : counts) total += count;
  at::Tensor all = at::empty({static_cast<std::int64_t>(total)}, mine.options());
  const Region from = call.holder().input(mine);
  const Region to = call.holder().output(all);
  call.submit([&](const CallOptions& options) {
    return call.communicator().allGather(from, to, counts, dtype, options);
  });
  return all;
}

Counts scaled(Counts counts, std::int64_t factor) {
  for (std::uint64_t& count : counts) count *= static_cast<std::uint64_t>(factor);
  return counts;
}

// Every rank's block of indices is [sparse dimensions, its elements].
at::Tensor joinIndices(const at::Tensor& blocks, const Counts& elements, std::int64_t dimensions) {
  std::vector<at::Tensor> parts;
  std::int64_t start = 0;
  for (const std::uint64_t count : elements) {
    const auto columns = static_cast<std::int64_t>(count);
    parts.push_back(blocks.narrow(0, start, columns * dimensions).view({dimensions, columns}));
    start += columns * dimensions;
  }
  return at::cat(parts, 1);
}

}  // namespace

void submitSparseSum(Call& call, int size, const at::Tensor& tensor, const Reduction& reduction) {
  if (!tensor.device().is_cpu()) {
    invalid("the tensor is on device " + tensor.device().str() + "; expected cpu");
  }
  if (reduction.op != ReduceOp::Sum) invalid("sparse tensors can only be summed (SUM)");
  const at::AutoDispatchBelowADInplaceOrView noGrad;
  const at::Tensor mine = tensor.coalesce();
  const at::Tensor values = mine.values().contiguous();
  const Counts elements = exchangeElements(call, size, mine);
  const std::int64_t dimensions = mine.sparse_dim();
  std::int64_t dense = 1;
  for (std::int64_t d = dimensions; d < mine.dim(); ++d) dense *= mine.size(d);
  const at::Tensor allIndices =
      gatherParts(call, mine.indices().contiguous(), scaled(elements, dimensions), DType::Int64);
  const at::Tensor allValues =
      gatherParts(call, values, scaled(elements, dense), dtypeOf(values, false));
  call.holder().afterwards(tensor, [=] {
    std::vector<std::int64_t> shape = values.sizes().vec();
    shape[0] = 0;
    for (const std::uint64_t count : elements) shape[0] += static_cast<std::int64_t>(count);
    tensor.copy_(at::sparse_coo_tensor(joinIndices(allIndices, elements, dimensions),
                                       allValues.view(shape), tensor.sizes(), tensor.options())
                     .coalesce());
  });
}

}  // namespace byway::pytorch
