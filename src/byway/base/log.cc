// SPDX-License-Identifier: BSD-3-Clause
#include "byway/base/log.h"

#include <memory>
#include <mutex>
#include <utility>

namespace byway {
namespace {

std::mutex mutex;
std::shared_ptr<const LogHook> current;

}  // namespace

void setLogHook(LogHook hook) {
  auto next = hook ? std::make_shared<const LogHook>(std::move(hook)) : nullptr;
  const std::scoped_lock lock(mutex);
  current = std::move(next);
}

void log(LogLevel level, const std::string& line) {
  std::shared_ptr<const LogHook> hook;
  {
    const std::scoped_lock lock(mutex);
    hook = current;
  }
  if (hook) (*hook)(level, line);
}

}  // namespace byway
