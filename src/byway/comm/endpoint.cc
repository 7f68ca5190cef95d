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
#include "byway/comm/paced_links.h"
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

std::shared_ptr<PacedLinks> linksOf(const Pace& pace) {
  return pace.links ? std::make_shared<PacedLinks>(pace.links) : nullptr;
}

std::unique_ptr<Wire> pacedWire(std::unique_ptr<Wire> wire, const Pace& pace,
                                const std::shared_ptr<PacedLinks>& links, Seconds tick,
                                double phase) {
  if (pace == Pace{}) return wire;
  PaceOptions options;
  if (links) {
    options = PacedLinks::options(links);
  } else {
    const LinkRate rate{pace.bytesPerSecond, pace.latency};
    options.rateFrom = [rate](PeerId) { return rate; };
  }
  options.tick = tick;
  options.phase = phase;
  return makePacedWire(std::move(wire), std::move(options));
}

bool namesTopology(const std::string& text) {
  return text.starts_with("mesh:") || text.starts_with("switch:") || text.ends_with(".json") ||
         text.find('/') != std::string::npos;
}

}  // namespace

Pace Pace::of(Topology topology) {
  Pace pace;
  pace.links = std::make_shared<const Topology>(std::move(topology));
  return pace;
}

bool Pace::operator==(const Pace& other) const {
  if (bytesPerSecond != other.bytesPerSecond || latency != other.latency) return false;
  if (links == other.links) return true;
  return links && other.links && links->hash() == other.links->hash();
}

std::string Pace::text() const {
  if (links) return fmt::format("{} [{:016x}]", links->name, links->hash());
  return fmt::format("{} bytes/s, {} us", bytesPerSecond, latency * 1e6);
}

Pace parsePace(const std::string& text) {
  if (namesTopology(text)) return Pace::of(parseTopology(text));
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

Endpoint::Endpoint(std::shared_ptr<Engine> engine, Pace pace, std::shared_ptr<PacedLinks> links,
                   bool selfDriven)
    : engine_(std::move(engine)),
      pace_(std::move(pace)),
      links_(std::move(links)),
      selfDriven_(selfDriven) {}

Endpoint::~Endpoint() = default;

void Endpoint::place(int self, const std::vector<PeerId>& peers, const std::vector<int>& ranks) {
  if (!links_) return;
  for (const int rank : ranks) {
    if (rank < links_->topology().ranks) continue;
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("rank {} is not in the pace's topology \"{}\", which has {} ranks",
                            rank, links_->topology().name, links_->topology().ranks));
  }
  engine_->locked([&] {
    for (std::size_t i = 0; i < peers.size(); ++i) links_->place(self, peers[i], ranks[i]);
  });
}

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
  // One that has lost a peer serves its communicators to their end, and no others.
  std::erase_if(*all, [](const auto& endpoint) {
    return endpoint->engine()->lostAPeer() && endpoint.use_count() == 1;
  });
  for (const auto& endpoint : *all) {
    if (endpoint->pace() == pace && !endpoint->engine()->lostAPeer()) return endpoint;
  }
  if (!(pace == Pace{})) {
    log(LogLevel::Info, fmt::format("byway: links are paced to {}", pace.text()));
  }
  constexpr Seconds kTick = 0.002;
  const double phase = static_cast<double>(static_cast<unsigned>(::getpid()) % 16) / 16.0;
  auto links = linksOf(pace);
  auto transport = std::make_unique<Transport>(pacedWire(makeUcxWire(), pace, links, kTick, phase));
  auto engine = Engine::make(std::move(transport));
  all->push_back(std::make_shared<Endpoint>(std::move(engine), pace, std::move(links), true));
  return all->back();
}

std::shared_ptr<Endpoint> Endpoint::inproc(std::shared_ptr<InprocFabric> fabric, Pace pace,
                                           const Clock* clock) {
  const bool selfDriven = clock == nullptr;
  const Clock& time = selfDriven ? SteadyClock::instance() : *clock;
  constexpr Seconds kTick = 0.002;
  auto links = linksOf(pace);
  auto wire =
      pacedWire(makeInprocWire(std::move(fabric), time), pace, links, selfDriven ? kTick : 0, 0);
  EngineOptions options;
  options.progressThread = selfDriven;
  auto engine = Engine::make(std::make_unique<Transport>(std::move(wire)), options);
  return std::make_shared<Endpoint>(std::move(engine), std::move(pace), std::move(links),
                                    selfDriven);
}

}  // namespace byway
