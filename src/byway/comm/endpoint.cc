// SPDX-License-Identifier: BSD-3-Clause
#include "byway/comm/endpoint.h"

#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "byway/base/error.h"
#include "byway/base/log.h"
#include "byway/executor/engine.h"
#include "byway/transport/inproc/inproc_wire.h"
#include "byway/transport/paced/paced_wire.h"
#include "byway/transport/ucx/ucx_wire.h"

namespace byway {
namespace {

double parseScaled(const std::string& text, const std::string& whole) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  std::string suffix(end);
  if (suffix == "k")
    value *= 1e3;
  else if (suffix == "M")
    value *= 1e6;
  else if (suffix == "G")
    value *= 1e9;
  else if (!suffix.empty() || text.empty())
    value = -1;
  if (!(value >= 0) || value > 1e15) {
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("pace \"{}\": \"{}\" is not a number of bytes per second (suffixes k, M, G)",
                    whole, text));
  }
  return value;
}

std::unique_ptr<Wire> pacedWire(std::unique_ptr<Wire> wire, const Pace& pace, Seconds tick,
                                double phase) {
  if (pace == Pace{}) return wire;
  PaceOptions options;
  options.rateFrom = [pace](PeerId) { return LinkRate{pace.bytesPerSecond, pace.latency}; };
  options.tick = tick;
  options.phase = phase;
  return makePacedWire(std::move(wire), std::move(options));
}

}  // namespace

Pace parsePace(const std::string& text) {
  const auto comma = text.find(',');
  Pace pace;
  pace.bytesPerSecond = parseScaled(text.substr(0, comma), text);
  if (comma != std::string::npos) {
    const std::string tail = text.substr(comma + 1);
    char* end = nullptr;
    const double us = std::strtod(tail.c_str(), &end);
    if (tail.empty() || *end != '\0' || !(us >= 0) || us > 1e9) {
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("pace \"{}\": \"{}\" is not a latency in microseconds", text, tail));
    }
    pace.latency = us * 1e-6;
  }
  return pace;
}

Endpoint::Endpoint(std::shared_ptr<Engine> engine, Pace pace, bool selfDriven)
    : engine_(std::move(engine)), pace_(pace), selfDriven_(selfDriven) {}

Endpoint::~Endpoint() = default;

std::shared_ptr<Endpoint> Endpoint::process(std::optional<Pace> wanted) {
  static std::mutex mutex;
  // Never destroyed, but stopped at exit, before UCX's own clean-up runs, also where communicators
  // still hold on. Buffers of calls under way then are let go of here.
  static auto* const all = new std::vector<std::shared_ptr<Endpoint>>();
  static const int atExit = std::atexit([] {
    for (const auto& endpoint : *all) endpoint->engine()->shutdown();
    all->clear();
  });
  (void)atExit;
  Pace pace = wanted.value_or(Pace{});
  if (!wanted) {
    if (const char* text = std::getenv("BYWAY_PACE")) pace = parsePace(text);
  }
  const std::scoped_lock lock(mutex);
  for (const auto& endpoint : *all) {
    if (endpoint->pace() == pace) return endpoint;
  }
  if (!(pace == Pace{})) {
    log(LogLevel::Info, fmt::format("byway: links are paced to {} bytes/s, {} us",
                                    pace.bytesPerSecond, pace.latency * 1e6));
  }
  constexpr Seconds kTick = 0.002;
  const double phase = static_cast<double>(static_cast<unsigned>(::getpid()) % 16) / 16.0;
  auto transport = std::make_unique<Transport>(pacedWire(makeUcxWire(), pace, kTick, phase));
  EngineOptions options;
  options.coresToSpare = false;
  auto engine = Engine::make(std::move(transport), options);
  all->push_back(std::make_shared<Endpoint>(std::move(engine), pace, true));
  return all->back();
}

std::shared_ptr<Endpoint> Endpoint::inproc(std::shared_ptr<InprocFabric> fabric, Pace pace,
                                           const Clock* clock) {
  const bool selfDriven = clock == nullptr;
  const Clock& time = selfDriven ? SteadyClock::instance() : *clock;
  constexpr Seconds kTick = 0.002;
  auto wire = pacedWire(makeInprocWire(std::move(fabric), time), pace, selfDriven ? kTick : 0, 0);
  EngineOptions options;
  options.progressThread = selfDriven;
  auto engine = Engine::make(std::make_unique<Transport>(std::move(wire)), options);
  return std::make_shared<Endpoint>(std::move(engine), pace, selfDriven);
}

}  // namespace byway
