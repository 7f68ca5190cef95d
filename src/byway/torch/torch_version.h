// SPDX-License-Identifier: BSD-3-Clause
// All that differs between the torch releases that Byway can be built for (2.11 to 2.14).
#pragma once

#include <torch/version.h>

#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR < 11 || TORCH_VERSION_MINOR > 14
#error "Byway's torch backend is written for torch 2.11 to 2.14"
#endif

// The names of the methods that take one flat tensor (`_allgather_base` and its kind) are the same
// in all of them: later releases add other names, which call these.
