// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/command.h"
namespace byway::tools {
void addDemoCommand(CLI::App&, Action&) {}
void addDemoRankCommand(CLI::App&, Action&) {}
void addTableCommand(CLI::App&, Action&) {}
}
