// SPDX-License-Identifier: BSD-3-Clause
// What python/byway/lazy calls, as operators, so that this library needs no Python of its own.
#include <cstdint>
#include <string>
#include <vector>

#include <torch/csrc/lazy/core/config.h>
#include <torch/library.h>

#include "byway/torch/lazy/check.h"
#include "byway/torch/lazy/flush.h"
#include "byway/torch/lazy/record_table.h"

namespace byway::pytorch::lazy {
namespace {

std::vector<std::int64_t> statistics() {
  const Statistics now = RecordTable::instance().statistics();
  return {now.recorded, now.executed, now.replayed, now.kept, now.pending};
}

void setCut(bool cut) { setMode(cut ? Mode::Cut : Mode::Record); }

}  // namespace

TORCH_LIBRARY_FRAGMENT(byway_lazy, library) {
  library.def("flush() -> ()", &flush);
  library.def("flush_calls() -> ()", &flushCalls);
  library.def("reset() -> ()", &reset);
  library.def("set_cut(bool cut) -> ()", &setCut);
  library.def("set_limit(int calls) -> ()", &setLimit);
  library.def("statistics() -> int[]", &statistics);
  library.def("set_logging(bool on) -> ()",
              [](bool on) { RecordTable::instance().setLogging(on); });
  library.def("take_log() -> str[]", [] { return RecordTable::instance().takeLog(); });
  library.def("use_thread_pool(bool on) -> ()",
              [](bool on) { FLAGS_torch_lazy_use_thread_pool = on; });
  library.def("connect(int link) -> ()", &connect);
}

}  // namespace byway::pytorch::lazy
