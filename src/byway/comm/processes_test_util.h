// SPDX-License-Identifier: BSD-3-Clause
// Ranks as forked processes: for what threads cannot show.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace byway {

// Runs fn(rank, folder) in n children; the folder is new, shared, and removed at the end. Must be
// called before this process starts threads. What a child throws becomes its message; children that
// are not over after `seconds` are killed. Returns one text a rank, "" for success.
std::vector<std::string> runProcesses(
    int n, double seconds, const std::function<void(int rank, const std::string& folder)>& fn);

}  // namespace byway
