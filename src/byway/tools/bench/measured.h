// SPDX-License-Identifier: BSD-3-Clause
// One finished cell: what is printed, checked and kept in the results file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "byway/tools/bench/bench_cells.h"
#include "byway/tools/demo/results.h"

namespace byway::tools {

struct Measured {
  std::string key;  // keyOf(cell)
  std::string name;
  std::string collective, active, scenario, dtype, route;
  std::vector<std::vector<int>> groups;
  std::vector<std::uint64_t> counts;
  int ranks = 0, live = 0, samples = 0;
  std::uint64_t bytes = 0, wrong = 0;
  Seconds direct = 0, chosen = 0;  // medians
  Seconds directBest = 0, chosenBest = 0;
  double speedup = 1;
  Interval interval;
  std::optional<double> limit;  // none for flat cells
  std::optional<std::string> peer;
  std::optional<Seconds> peerTime;
  bool samePlan = false, verified = false, decided = true;
  double predictedGain = 1;  // direct over the best relay, as the cost model has them
  Seconds directComputed = 0, limitTime = 0;

  // Flat: bytes of the larger of a rank's buffers per second, and what each rank sends and receives
  // at least, per second (the "bus bandwidth" of collective benchmarks).
  double algorithmBandwidth() const;
  double busBandwidth() const;
};

// The row's name in a comparison with `peer`.
std::string keyAgainst(const DemoCell& cell, const std::string& peer);
// A flat cell's row from its times, as far as they go.
Measured flatRow(const DemoCell& cell, const std::vector<double>& times);

// `measured` where values were compared; on a virtual clock without memory they are not.
Measured measuredOf(const CellResult& result, double predictedGain, const StopRule& rule);

// The row has the keys of every results file; the detail what else a resumed run needs.
nlohmann::ordered_json rowOf(const Measured& cell);
nlohmann::ordered_json detailOf(const Measured& cell);
// Throws nlohmann::json::exception where either is not what those functions make.
Measured measuredOf(const nlohmann::ordered_json& row, const nlohmann::ordered_json& detail);

}  // namespace byway::tools
