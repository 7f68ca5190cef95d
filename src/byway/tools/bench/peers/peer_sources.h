// SPDX-License-Identifier: BSD-3-Clause
// The sources of the other libraries' ranks, which the bench compiles where it runs: text of the
// files of this folder, put together by CMake.
#pragma once

#include <string_view>

namespace byway::tools {

extern const std::string_view kPeerLoopSource;  // peer_loop.h
extern const std::string_view kMpiPeerSource;   // mpi_peer.cpp
extern const std::string_view kGlooPeerSource;  // gloo_peer.cpp
extern const std::string_view kGlooPeerScript;  // gloo_peer.py

}  // namespace byway::tools
