// SPDX-License-Identifier: BSD-3-Clause
// UCX active messages, gets and wake-up descriptors: shared memory, CMA, TCP, RDMA where present.
#pragma once

#include <memory>
#include <string>

#include "byway/transport/wire.h"

namespace byway {

// Throws Error{Resource} when UCX cannot be started and Error{Unsupported} when the library found
// at run time is older than the one compiled against; both name what was found.
std::unique_ptr<Wire> makeUcxWire();

struct UcxInfo {
  std::string compiledVersion, runtimeVersion, libraryPath;
  bool fetchWithoutCopyThread = false;  // cross-process reads (CMA) work here
};
UcxInfo ucxInfo();

}  // namespace byway
