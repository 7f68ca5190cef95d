// SPDX-License-Identifier: BSD-3-Clause
// The flow LP of a limit: its minimum is the normalised time.
#pragma once

#include <vector>

#include "byway/planner/limit_problem.h"
#include "byway/planner/named_lp.h"

namespace byway {

NamedLp flowLp(const LimitProblem& problem);

// The same, smaller by the problem's symmetries.
NamedLp foldedFlowLp(const LimitProblem& problem);

// What a symmetry of the problem does to the names of its LP.
NamedLp::Symmetry onNames(const LimitSymmetry& symmetry);

// Variables that flowLp would make.
double flowLpSize(const LimitProblem& problem);

}  // namespace byway
