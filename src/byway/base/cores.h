// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace byway {

// Cores that this process may run on; 1 where the system does not say. Asked once.
int coresHere();

}  // namespace byway
