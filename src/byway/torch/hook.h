// SPDX-License-Identifier: BSD-3-Clause
// What runs before every call of a backend: null, unless a mode that defers calls (lazy) is on and
// must bring its own up to date first.
#pragma once

namespace c10d {
class Backend;
}

namespace byway::pytorch {

// `operation` is torch's name of the call ("all_reduce", "send", ...). What it throws is the call's
// error, before anything is sent.
using CallHook = void (*)(const char* operation);

void setCallHook(CallHook hook);
void runCallHook(const char* operation);

// While set on this thread, calls are only checked: a call with wrong arguments throws as always,
// one with right ones does nothing, and neither is seen by other ranks or counted.
void setChecking(bool on);
bool isChecking();

// What lazy mode, a library of its own, is given of this one.
struct LazyLink {
  void (*setHook)(CallHook hook);
  void (*setChecking)(bool on);
  bool (*isByway)(const c10d::Backend& backend);
};
const LazyLink& lazyLink();

}  // namespace byway::pytorch
