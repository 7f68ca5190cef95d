// SPDX-License-Identifier: BSD-3-Clause
// Values of options as people write them. What is wrong is an Error{InvalidArgument} that names the
// option and the text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "byway/base/clock.h"
#include "byway/schedule/shape.h"

namespace byway::tools {

// k, M, G (also K) are decimal; Ki, Mi, Gi are powers of 1024: "8M", "64Ki".
std::uint64_t parseBytes(const std::string& text, const std::string& option);
// "8M" or "8M,4M".
std::vector<std::uint64_t> parseByteList(const std::string& text, const std::string& option);
// "4Ki-1Gi" or "4Ki:1Gi:x2": from the first, times four or what is stated, up to the second; or a
// list of sizes and ranges.
std::vector<std::uint64_t> parseSizes(const std::string& text, const std::string& option);
// Bytes per second, decimal suffixes.
double parseRate(const std::string& text, const std::string& option);
// "0,10,50": not negative.
std::vector<double> parseNumbers(const std::string& text, const std::string& option);

// "0,1;2,3". Roots are position 0.
std::vector<Group> parseGroups(const std::string& text, const std::string& option);
// One group of the first `active` ranks, or all that fit one after another.
std::vector<Group> regularGroups(int ranks, int active, bool fused);

Collective collectiveNamed(const std::string& name);
DType dtypeNamed(const std::string& name);
ReduceOp reduceOpNamed(const std::string& name);
// "allreduce, all-gather, ...".
std::string collectiveNames();

std::string bytesText(std::uint64_t bytes);                // "8 MB", "64 KiB", "1000 B"
std::string groupsText(const std::vector<Group>& groups);  // "0,1;2,3"

}  // namespace byway::tools
