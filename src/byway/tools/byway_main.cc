// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/command.h"

int main(int argc, char** argv) { return byway::tools::runCommandLine({argv + 1, argv + argc}); }
