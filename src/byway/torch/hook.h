// SPDX-License-Identifier: BSD-3-Clause
// What runs before every call of a backend: null, unless a mode that defers calls (lazy) is on and
// must bring its own up to date first.
#pragma once

namespace byway::pytorch {

// `operation` is torch's name of the call ("all_reduce", "send", ...). What it throws is the call's
// error, before anything is sent.
using CallHook = void (*)(const char* operation);

void setCallHook(CallHook hook);
void runCallHook(const char* operation);

}  // namespace byway::pytorch
