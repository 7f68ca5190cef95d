// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace byway::pytorch {

// While on, a call of one of our groups with a lazy tensor is an error that names
// byway.lazy.init(): without lazy mode torch would make it with copies and drop the results.
void guardLazyTensors(bool on);

}  // namespace byway::pytorch
