// SPDX-License-Identifier: BSD-3-Clause
// The functions behind the registry in constructions.cc, one for each builder file.
#pragma once

#include <vector>

#include "byway/planner/construction.h"

namespace byway {

std::vector<Candidate> directCandidates(const Cell& cell);
std::vector<Candidate> s0Candidates(const Cell& cell);
std::vector<Candidate> s3Candidates(const Cell& cell);
std::vector<Candidate> s4Candidates(const Cell& cell);
std::vector<Candidate> s5Candidates(const Cell& cell);
std::vector<Candidate> s6Candidates(const Cell& cell);
std::vector<Candidate> s7Candidates(const Cell& cell);

}  // namespace byway
