// SPDX-License-Identifier: BSD-3-Clause
// Sums of sparse tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include "byway/torch/call.h"

namespace byway::pytorch {

// Adds up a sparse (COO) CPU tensor of equal shape over all ranks; it then holds the sum. Waits for
// all ranks to enter, since how many elements each has is not known before; the elements themselves
// travel asynchronously. SUM only.
void submitSparseSum(Call& call, int size, const at::Tensor& tensor, const Reduction& reduction);

}  // namespace byway::pytorch
