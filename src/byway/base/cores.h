// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>

namespace byway {

// Cores that this process may run on; 1 where the system does not say. Asked once.
int coresHere();

// The core that the calling thread runs on at the moment; -1 where the system does not say.
int currentCore();

// Moves the calling thread to another core that it may run on, none of `taken` if there is such a
// one. It may run on the same cores afterwards as before. False: it has no other core.
bool moveToAnotherCore(std::span<const int> taken);

}  // namespace byway
